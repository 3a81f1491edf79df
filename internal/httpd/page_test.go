package httpd_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"hookglass/internal/httpd"
)

func TestAListIsPagedToItsEnd(t *testing.T) {
	t.Parallel()
	const list = httpd.List('x')
	all := []int64{3, 5, 8, 13, 21}
	store := func(behind int64, most int) (found []int64) {
		for _, n := range all {
			if n > behind && (most == 0 || len(found) < most) {
				found = append(found, n)
			}
		}
		return found
	}
	same := func(n int64) int64 { return n }
	for limit, want := range map[int][]int{0: {5}, 1: {1, 1, 1, 1, 1}, 2: {2, 2, 1}, 5: {5}, 6: {5}} {
		var got []int64
		var sizes []int
		for cursor := ""; ; {
			p, err := list.Page(limit, cursor)
			if err != nil {
				t.Fatal(err)
			}
			if limit > 0 && p.Most() != limit+1 {
				t.Errorf("limit %d: %d are read", limit, p.Most())
			}
			out := httpd.Answer(p, store(p.Behind, p.Most()), same, same)
			got, sizes = append(got, out.Data...), append(sizes, len(out.Data))
			if out.Meta.NextCursor == nil {
				break
			}
			cursor = *out.Meta.NextCursor
		}
		if !slices.Equal(got, all) || !slices.Equal(sizes, want) {
			t.Errorf("limit %d: %v in pages of %v", limit, got, sizes)
		}
	}
	if out := httpd.Answer(httpd.Page{}, nil, same, same); out.Data == nil {
		t.Error("an empty list is null")
	}
}

func TestACursorIsOfOneList(t *testing.T) {
	t.Parallel()
	const list, other = httpd.List('x'), httpd.List('y')
	for _, place := range []int64{0, 1, 1 << 40, math.MaxInt64} {
		if got, err := list.Place(*list.Cursor(place)); err != nil || got != place {
			t.Errorf("%d: %d, %v", place, got, err)
		}
	}
	for _, wrong := range []string{*other.Cursor(5), "x", "!", *list.Cursor(5) + "A", *list.Cursor(5) + "=", strings.Repeat("A", 100), *list.Cursor(-1), "\n", "eA", *list.Cursor(300) + "!"} {
		if got, err := list.Place(wrong); err == nil {
			t.Errorf("%q is taken for %d", wrong, got)
		}
	}
}

func TestACursorOfIDsIsOfOneList(t *testing.T) {
	t.Parallel()
	const list, other = httpd.List('x'), httpd.List('y')
	const id = "arun_06h2pztger029g65bk7hmrzd7r"
	for cursor, want := range map[string]string{"": "", *list.CursorBehind(id): id} {
		if p, err := list.PageOfIDs(1, cursor); err != nil || p.BehindID != want {
			t.Errorf("%q: %q, %v", cursor, p.BehindID, err)
		}
	}
	for _, wrong := range []string{*other.CursorBehind(id), *list.CursorBehind(""), *list.CursorBehind("a\x00"), *list.CursorBehind("\xff"), id, "!", *list.CursorBehind(id) + "="} {
		if p, err := list.PageOfIDs(1, wrong); err == nil {
			t.Errorf("%q is taken for %q", wrong, p.BehindID)
		}
	}
}
