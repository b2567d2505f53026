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
		"return the first message with a key":          claimsReturnTheFirstMessage,
		"are read by FirstMessageID":                   claimsAreRead,
		"may be repeated by another after they expire": claimsExpire,
		"of two gateways have one message per key":     claimsCompete,
		"are swept in several transactions":            claimsAreSwept,
	}
}

// claim claims keys for an hour and returns the ids of the messages that have them.
func (r *rig) claim(t *testing.T, claims ...Claim) []string {
	t.Helper()
	firstIDs, err := r.Claim(t.Context(), claims, time.Hour)
	relaytest.NoError(t, err)
	return firstIDs
}

func claimsReturnTheFirstMessage(t *testing.T, s *rig) {
	if got := s.claim(t, Claim{Key: "a", MessageID: "e1"}, Claim{Key: "b", MessageID: "e2"}, Claim{Key: "a", MessageID: "e3"}); !slices.Equal(got, []string{"e1", "e2", "e1"}) {
		t.Errorf("ids = %q, want e1, e2 and e1", got)
	}
	if got := s.claim(t, Claim{Key: "b", MessageID: "e9"}, Claim{Key: "a", MessageID: "e1"}); !slices.Equal(got, []string{"e2", "e1"}) {
		t.Errorf("ids of the repeated claims = %q, want e2 and e1", got)
	}
	if got := s.claim(t); len(got) != 0 {
		t.Errorf("ids without claims = %q, want none", got)
	}
}

func claimsAreRead(t *testing.T, s *rig) {
	if got, err := s.FirstMessageID(t.Context(), "k"); got != "" || err != nil {
		t.Errorf("message of an unclaimed key = %q, error = %v, want none", got, err)
	}
	s.claim(t, Claim{Key: "k", MessageID: "m1"})
	if got, err := s.FirstMessageID(t.Context(), "k"); got != "m1" || err != nil {
		t.Errorf("message = %q, error = %v, want m1", got, err)
	}
}

func claimsExpire(t *testing.T, s *rig) {
	s.claim(t, Claim{Key: "a", MessageID: "e1"}, Claim{Key: "b", MessageID: "e1"})
	s.advance(59 * time.Minute)
	if got := s.claim(t, Claim{Key: "a", MessageID: "e2"}); got[0] != "e1" {
		t.Errorf("message before the claim expires = %q, want e1", got)
	}
	s.advance(time.Minute)
	if got, err := s.FirstMessageID(t.Context(), "a"); got != "" || err != nil {
		t.Errorf("message of an expired claim = %q, error = %v, want none", got, err)
	}
	if got := s.claim(t, Claim{Key: "a", MessageID: "e2"}); got[0] != "e2" {
		t.Errorf("message after the claim expired = %q, want e2", got)
	}
	if n := s.sweep(t, "carrier_id"); n != 1 {
		t.Errorf("remaining claims = %d, want 1", n)
	}
}

func claimsCompete(t *testing.T, s *rig) {
	stores := []*Store{s.Store, s.secondStore(t)}
	firstIDs := make([][]string, 8) // of the keys 0 to 49, by call
	dbtest.RunConcurrently(len(firstIDs), func(i int) {
		var claims []Claim
		for n := range 50 {
			claims = append(claims, Claim{Key: fmt.Sprint((n*7 + i) % 50), MessageID: fmt.Sprint("m", i)})
		}
		got, err := stores[i%2].Claim(t.Context(), claims, time.Hour)
		if err != nil {
			t.Error(err)
			return
		}
		firstIDs[i] = make([]string, 50)
		for n := range claims {
			firstIDs[i][(n*7+i)%50] = got[n]
		}
	})
	for i := range firstIDs {
		if !slices.Equal(firstIDs[i], firstIDs[0]) || slices.Contains(firstIDs[i], "") {
			t.Errorf("ids of call %d = %q, want %q as in call 0", i, firstIDs[i], firstIDs[0])
		}
	}
}

func claimsAreSwept(t *testing.T, s *rig) {
	var claims []Claim
	for n := range db.MaxSweep + 10 {
		claims = append(claims, Claim{Key: fmt.Sprint(n), MessageID: "m"})
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
