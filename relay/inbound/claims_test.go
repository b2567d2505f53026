package inbound

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func claimCases() cases {
	return cases{
		"belong to the first and come back":    claimsBelongToTheFirst,
		"are looked up without a change":       claimsAreLookedUp,
		"that expired may be taken by another": claimsExpire,
		"of two gateways have one holder each": claimsCompete,
		"of more keys than a sweep takes end":  claimsAreSwept,
	}
}

func (r *rig) claim(t *testing.T, pairs ...Claim) []string {
	t.Helper()
	got, err := r.Claim(t.Context(), pairs, time.Hour)
	relaytest.NoError(t, err)
	return got
}

func claimsBelongToTheFirst(t *testing.T, s *rig) {
	if got := s.claim(t, Claim{Key: "a", Holder: "e1"}, Claim{Key: "b", Holder: "e2"}, Claim{Key: "a", Holder: "e3"}); !slices.Equal(got, []string{"e1", "e2", "e1"}) {
		t.Errorf("got %q", got)
	}
	if got := s.claim(t, Claim{Key: "b", Holder: "e9"}, Claim{Key: "a", Holder: "e1"}); !slices.Equal(got, []string{"e2", "e1"}) {
		t.Errorf("again: %q", got)
	}
	if got := s.claim(t); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
}

func claimsAreLookedUp(t *testing.T, s *rig) {
	if got, err := s.Holder(t.Context(), "k"); got != "" || err != nil {
		t.Errorf("nobody's: %q %v", got, err)
	}
	s.claim(t, Claim{Key: "k", Holder: "m1"})
	if got, err := s.Holder(t.Context(), "k"); got != "m1" || err != nil {
		t.Errorf("m1's: %q %v", got, err)
	}
}

func claimsExpire(t *testing.T, s *rig) {
	s.claim(t, Claim{Key: "a", Holder: "e1"}, Claim{Key: "b", Holder: "e1"})
	s.advance(59 * time.Minute)
	if got := s.claim(t, Claim{Key: "a", Holder: "e2"}); got[0] != "e1" {
		t.Errorf("before it expires: %q", got)
	}
	s.advance(time.Minute)
	if got, err := s.Holder(t.Context(), "a"); got != "" || err != nil {
		t.Errorf("expired: %q, %v", got, err)
	}
	if got := s.claim(t, Claim{Key: "a", Holder: "e2"}); got[0] != "e2" {
		t.Errorf("after it expired: %q", got)
	}
	if n := s.sweep(t, "carrier_id"); n != 1 {
		t.Errorf("%d are left", n)
	}
}

func claimsCompete(t *testing.T, s *rig) {
	stores := []*Store{s.Store, s.second(t)}
	held := make([][]string, 8)
	dbtest.Together(len(held), func(i int) {
		var claims []Claim
		for n := range 50 {
			claims = append(claims, Claim{Key: fmt.Sprint((n*7 + i) % 50), Holder: fmt.Sprint("m", i)})
		}
		got, err := stores[i%2].Claim(t.Context(), claims, time.Hour)
		if err != nil {
			t.Error(err)
			return
		}
		held[i] = make([]string, 50)
		for n := range claims {
			held[i][(n*7+i)%50] = got[n]
		}
	})
	for i := range held {
		if !slices.Equal(held[i], held[0]) || slices.Contains(held[i], "") {
			t.Errorf("%d saw %q, the first %q", i, held[i], held[0])
		}
	}
}

func claimsAreSwept(t *testing.T, s *rig) {
	var claims []Claim
	for n := range db.MaxSweep + 10 {
		claims = append(claims, Claim{Key: fmt.Sprint(n), Holder: "m"})
	}
	s.claim(t, claims...)
	if n := s.sweep(t, "carrier_id"); n != len(claims) {
		t.Errorf("%d are left of %d that have not expired", n, len(claims))
	}
	s.advance(time.Hour)
	if n := s.sweep(t, "carrier_id"); n != 0 {
		t.Errorf("%d are left", n)
	}
}
