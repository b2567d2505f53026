package ledger

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestCanonicalJSON(t *testing.T) {
	for _, tc := range []struct{ name, input, want string }{
		{"sorted names without blanks", ` { "b" : 1 , "a" : [ true , null ] } `, `{"a":[true,null],"b":1}`},
		{"numbers unchanged", `[1.0,1e2,12345678901234567890]`, `[1.0,1e2,12345678901234567890]`},
		{"unescaped characters", `"\u0041\u003c\u00e9\/"`, `"A<é/"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := canonical(json.RawMessage(tc.input)); err != nil || string(got) != tc.want {
				t.Errorf("got %s, error %v; want %s", got, err, tc.want)
			}
		})
	}
	if _, err := canonical(json.RawMessage(`{`)); err == nil {
		t.Error("invalid JSON was accepted")
	}
}

func TestALeafHasTimeTypeAndData(t *testing.T) {
	b, err := newLeaf(Claimed, time.Date(2026, 3, 1, 12, 0, 0, 5, time.FixedZone("", 3600)), map[string]any{"token": "t", "claim": 1})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the leaf", string(b), `{"at":"2026-03-01 11:00:00","data":{"claim":1,"token":"t"},"type":"claimed"}`)
	e, err := readEntry(7, b)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "sequence, type and data of the entry", []any{e.Sequence, e.Type, string(e.Data)}, []any{int64(7), Claimed, `{"claim":1,"token":"t"}`})
	if e.Hash == "" {
		t.Error("the entry has no hash")
	}
	for _, bad := range [][]byte{nil, []byte("{")} {
		if _, err := readEntry(0, bad); err == nil {
			t.Errorf("%q was read as an entry", bad)
		}
	}
}

func TestRemainingClaimsAndSecondsOfATokenAreComputed(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name      string
		token     Token
		valid     bool
		remaining int64 // -1 means unlimited
		seconds   int64 // -1 means that the token never expires
	}{
		{"unlimited", Token{Claimed: 9}, true, -1, -1},
		{"some claims left", Token{Limit: 3, Claimed: 1, ExpiresAt: now.Add(90*time.Second + 1)}, true, 2, 90},
		{"no claims left", Token{Limit: 3, Claimed: 3, ExpiresAt: now.Add(time.Second)}, true, 0, 1},
		{"limit lowered below the claims", Token{Limit: 1, Claimed: 3, ExpiresAt: now}, false, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			remaining, seconds := int64(-1), int64(-1)
			if n := tc.token.Remaining(); n != nil {
				remaining = *n
			}
			if n := (Validity{Token: tc.token}).RemainingSeconds(now); n != nil {
				seconds = *n
			}
			relaytest.Equal(t, "whether the token is valid", tc.token.Valid(now), tc.valid)
			relaytest.Equal(t, "the remaining claims", remaining, tc.remaining)
			relaytest.Equal(t, "the remaining seconds", seconds, tc.seconds)
		})
	}
}

// FuzzCanonical checks that canonical returns canonical JSON unchanged.
func FuzzCanonical(f *testing.F) {
	f.Add([]byte(`{"b":1.50,"a":["\u0041<&>",null,{}]}`))
	f.Add([]byte("\"\\ud800\xff\""))
	f.Fuzz(func(t *testing.T, text []byte) {
		canonicalText, err := canonical(json.RawMessage(text))
		if err != nil {
			return
		}
		twice, err := canonical(json.RawMessage(canonicalText))
		if err != nil || string(twice) != string(canonicalText) {
			t.Fatalf("canonical(%q) = %q, and its canonical form %q, error %v", text, canonicalText, twice, err)
		}
	})
}
