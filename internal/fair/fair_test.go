package fair_test

import (
	"fmt"
	"testing"

	"hookglass/internal/fair"
)

// hog takes all that it gets.
func hog(s *fair.Places, tenant string, target int64) (n int) {
	for s.Take(tenant, target) {
		n++
	}
	return n
}

func TestALineGetsHalfOfWhatItsTenantHasLeft(t *testing.T) {
	s := fair.NewPlaces(192, 64)
	for target, want := range []int{32, 16, 8, 4, 2, 1, 1, 0} {
		if n := hog(s, "a", int64(target)); n != want {
			t.Errorf("line %d got %d, want %d", target, n, want)
		}
	}
}

func TestPlacesAreSharedInTurn(t *testing.T) {
	s := fair.NewPlaces(4, 4)
	lines := []fair.Line{{Tenant: "a", Num: 1}, {Tenant: "b", Num: 2}, {Tenant: "c", Num: 3}}
	got, starved := s.Share(lines)
	if fmt.Sprint(got) != "map[1:1 2:1 3:1]" || starved {
		t.Errorf("%v, starved %t", got, starved)
	}
	got, starved = s.Share(lines) // one is left, for someone who has none
	if len(got) != 0 || !starved {
		t.Errorf("%v, starved %t", got, starved)
	}
	for _, l := range lines {
		s.Give(l.Tenant, l.Num)
	}
	s = fair.NewPlaces(2, 2)
	first := map[int64]bool{}
	for range lines {
		got, _ := s.Share(lines)
		for num := range got {
			first[num] = true
			s.Give(lines[num-1].Tenant, num)
		}
	}
	if len(first) != len(lines) {
		t.Errorf("only %v ever got a place", first)
	}
}

func TestALineOfLittleWorkLeavesPlacesToOthers(t *testing.T) {
	got, starved := fair.NewPlaces(100, 100).Share([]fair.Line{{Tenant: "a", Num: 1, Most: fair.Few}, {Tenant: "b", Num: 2}})
	if got[1] != fair.Few || got[2] != 46 || starved {
		t.Errorf("%v, starved %t", got, starved)
	}
}

func TestTenantsThatNeverLetGoLeavePlacesForOthers(t *testing.T) {
	s := fair.NewPlaces(192, 64)
	for i := range 40 { // each with so many targets that it takes all that a tenant may
		for target := range 10 {
			hog(s, fmt.Sprint(i), int64(target))
		}
		if i == 2 && !s.Take("newcomer", 1) {
			t.Fatal("after three tenants nothing is left")
		}
	}
	s.Give("newcomer", 1)
	if !s.Take("newcomer", 1) {
		t.Error("a place that was given back is gone")
	}
}

func TestPlacesThatAreGivenBackLeaveNothing(t *testing.T) {
	s := fair.NewPlaces(192, 64)
	for range 3 {
		n, m := hog(s, "a", 1), hog(s, "b", 1)
		if n != 32 || m != 32 {
			t.Fatalf("%d and %d", n, m)
		}
		for range n {
			s.Give("a", 1)
			s.Give("b", 1)
		}
	}
}

func TestTenantsHaveTheirTurns(t *testing.T) {
	lines := []fair.Line{{Tenant: "a", Num: 1}, {Tenant: "a", Num: 2}, {Tenant: "a", Num: 3}, {Tenant: "a", Num: 4}, {Tenant: "b", Num: 5}, {Tenant: "c", Num: 6}, {Tenant: "c", Num: 7}}
	var turns fair.Turns
	for i, c := range []struct {
		want string
		took int // of them
	}{
		{"[1 5 6 2 7 3 4]", 1},
		{"[5 6 2 7 3 4 1]", 3},
		{"[5 7 3 6 4 1 2]", 7},
		{"[5 7 3 6 4 1 2]", 0},
	} {
		var nums []int64
		for n, at := range turns.Order(lines) {
			nums = append(nums, lines[at].Num)
			if n < c.took {
				turns.Took(lines[at])
			}
		}
		if got := fmt.Sprint(nums); got != c.want {
			t.Errorf("round %d: %s, want %s", i+1, got, c.want)
		}
	}
	if got := turns.Order(nil); len(got) != 0 {
		t.Errorf("of none: %v", got)
	}
}
