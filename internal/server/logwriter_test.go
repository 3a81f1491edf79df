package server_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"

	"hookglass/internal/server"
)

// Who reads the log may stand still: nobody waits for that, and what was lost is told once the reader goes on.
func TestALogThatNobodyReadsHoldsNothingUp(t *testing.T) {
	reader, writer := io.Pipe()
	log, closeLog := server.NewLogger(writer, "text", "info")
	defer closeLog()
	const lines = 1100 // of which 1024 and the one that is being written have room
	for i := range lines {
		log.Info("line", "number", i)
	}
	go func() {
		for i := range lines {
			log.Info("later", "number", i)
		}
	}()
	var lost, kept int
	for in := bufio.NewScanner(reader); kept+lost < 2*lines && in.Scan(); {
		switch _, number, _ := strings.Cut(in.Text(), "lost="); {
		case number != "":
			var n int
			if _, err := fmt.Sscan(number, &n); err != nil {
				t.Fatal(err)
			}
			lost += n
		default:
			kept++
		}
	}
	if lost < lines-1025 || kept+lost != 2*lines {
		t.Errorf("%d lines of %d were kept, %d lost", kept, 2*lines, lost)
	}
}

func TestALineOfTheLogIsWrittenAtOnce(t *testing.T) {
	var out strings.Builder
	log, closeLog := server.NewLogger(&out, "json", "info")
	for i := range 100 {
		log.Info("line", "number", i)
		if n := strings.Count(out.String(), "\n"); n != i+1 {
			t.Fatalf("%d lines after %d", n, i+1)
		}
	}
	closeLog()
}
