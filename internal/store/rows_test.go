package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hookglass"
	"hookglass/internal/store"
	"hookglass/internal/store/storetest"
)

// Rows that a statement is given are read as they are, few and many, with what is missing in any of them.
func TestInputRows(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		some := [][]any{
			{int64(1), "one", []byte("bytes")},
			{nil, nil, nil},
			{int64(-1 << 63), "", []byte("")},
			{int64(1<<63 - 1), "snow ☃, a \"quote\", a \\ and a comma", []byte(strings.Repeat("{é}", 5000))},
			{nil, "NULL", []byte("NULL")},
		}
		for _, n := range []int{1, len(some), 200} {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				var rows, want [][]any
				for i := range n {
					row := some[i%len(some)]
					rows = append(rows, append([]any(nil), row...))
					read := append([]any(nil), row...)
					if b, ok := read[2].([]byte); ok {
						read[2] = string(b)
					}
					want = append(want, read)
				}
				var got [][]any
				err := db.Glance(t.Context(), hookglass.System, func(v *store.View) (err error) {
					got, err = v.Unnested(rows)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	})
}
