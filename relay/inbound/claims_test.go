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
		"return the first holder of a key":             claimsReturnTheFirstHolder,
		"are read by Holder":                           claimsAreRead,
		"may be repeated by another after they expire": claimsExpire,
		"of two gateways have one holder per key":      claimsCompete,
		"are swept in several transactions":            claimsAreSwept,
	}
}

// claim claims keys for an hour and returns their holders.
func (r *rig) claim(t *testing.T, claims ...Claim) []string {
	t.Helper()
	holders, err := r.Claim(t.Context(), claims, time.Hour)
	relaytest.NoError(t, err)
	return holders
}

func claimsReturnTheFirstHolder(t *testing.T, s *rig) {
	if got := s.claim(t, Claim{Key: "a", Holder: "e1"}, Claim{Key: "b", Holder: "e2"}, Claim{Key: "a", Holder: "e3"}); !slices.Equal(got, []string{"e1", "e2", "e1"}) {
		t.Errorf("holders = %q, want e1, e2 and e1", got)
	}
	if got := s.claim(t, Claim{Key: "b", Holder: "e9"}, Claim{Key: "a", Holder: "e1"}); !slices.Equal(got, []string{"e2", "e1"}) {
		t.Errorf("holders of the repeated claims = %q, want e2 and e1", got)
	}
	if got := s.claim(t); len(got) != 0 {
		t.Errorf("holders without claims = %q, want none", got)
	}
}

func claimsAreRead(t *testing.T, s *rig) {
	if got, err := s.Holder(t.Context(), "k"); got != "" || err != nil {
		t.Errorf("holder of an unclaimed key = %q, error = %v, want none", got, err)
	}
	s.claim(t, Claim{Key: "k", Holder: "m1"})
	if got, err := s.Holder(t.Context(), "k"); got != "m1" || err != nil {
		t.Errorf("holder = %q, error = %v, want m1", got, err)
	}
}

func claimsExpire(t *testing.T, s *rig) {
	s.claim(t, Claim{Key: "a", Holder: "e1"}, Claim{Key: "b", Holder: "e1"})
	s.advance(59 * time.Minute)
	if got := s.claim(t, Claim{Key: "a", Holder: "e2"}); got[0] != "e1" {
		t.Errorf("holder before the claim expires = %q, want e1", got)
	}
	s.advance(time.Minute)
	if got, err := s.Holder(t.Context(), "a"); got != "" || err != nil {
		t.Errorf("holder of an expired claim = %q, error = %v, want none", got, err)
	}
	if got := s.claim(t, Claim{Key: "a", Holder: "e2"}); got[0] != "e2" {
		t.Errorf("holder after the claim expired = %q, want e2", got)
	}
	if n := s.sweep(t, "carrier_id"); n != 1 {
		t.Errorf("remaining claims = %d, want 1", n)
	}
}

func claimsCompete(t *testing.T, s *rig) {
	stores := []*Store{s.Store, s.secondStore(t)}
	holders := make([][]string, 8) // of the keys 0 to 49, by call
	dbtest.RunConcurrently(len(holders), func(i int) {
		var claims []Claim
		for n := range 50 {
			claims = append(claims, Claim{Key: fmt.Sprint((n*7 + i) % 50), Holder: fmt.Sprint("m", i)})
		}
		got, err := stores[i%2].Claim(t.Context(), claims, time.Hour)
		if err != nil {
			t.Error(err)
			return
		}
		holders[i] = make([]string, 50)
		for n := range claims {
			holders[i][(n*7+i)%50] = got[n]
		}
	})
	for i := range holders {
		if !slices.Equal(holders[i], holders[0]) || slices.Contains(holders[i], "") {
			t.Errorf("holders of call %d = %q, want %q as in call 0", i, holders[i], holders[0])
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
		t.Errorf("remaining claims before they expire = %d, want %d", n, len(claims))
	}
	s.advance(time.Hour)
	if n := s.sweep(t, "carrier_id"); n != 0 {
		t.Errorf("remaining claims after they expire = %d, want 0", n)
	}
}
