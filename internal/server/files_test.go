package server_test

import (
	"errors"
	"math"
	"testing"

	"hookglass/internal/server"
)

// Half of few files, and more of many, go to connections: the rest is for storage, targets and what else is opened.
func TestFilesAreSharedOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit      uint64
		http, mail int
	}{
		{limit: 1, http: 1, mail: 1},
		{limit: 64, http: 32, mail: 8},
		{limit: 1024, http: 512, mail: 128},
		{limit: 4096, http: 2048, mail: 512},
		{limit: 8192, http: 6144, mail: 1024},
		{limit: 20_000, http: 16_384, mail: 1024},
		{limit: 65_536, http: 16_384, mail: 1024},
		{limit: math.MaxUint64, http: 16_384, mail: 1024}, // no limit
	} {
		if http, mail := server.Connections(c.limit, nil); http != c.http || mail != c.mail {
			t.Errorf("of %d files %d go to HTTP and %d to mail; want %d and %d", c.limit, http, mail, c.http, c.mail)
		}
	}
	if http, mail := server.Connections(0, errors.ErrUnsupported); http != 0 || mail != 0 {
		t.Errorf("without a limit that is known, %d and %d connections are taken; want the defaults", http, mail)
	}
}
