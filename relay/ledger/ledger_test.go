package ledger

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestCanonicalJSON(t *testing.T) {
	for _, tc := range []struct{ name, give, want string }{
		{"names in order, no blanks", ` { "b" : 1 , "a" : [ true , null ] } `, `{"a":[true,null],"b":1}`},
		{"numbers as they came", `[1.0,1e2,12345678901234567890]`, `[1.0,1e2,12345678901234567890]`},
		{"characters as themselves", `"\u0041\u003c\u00e9\/"`, `"A<é/"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := canonical(json.RawMessage(tc.give)); err != nil || string(got) != tc.want {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
	if _, err := canonical(json.RawMessage(`{`)); err == nil {
		t.Error("what is no JSON has a form")
	}
}

func TestALeafIsWhatADocumentShows(t *testing.T) {
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
			t.Errorf("%q is an entry", bad)
		}
	}
}

func TestWhatATokenHasLeft(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name      string
		token     Token
		valid     bool
		remaining int64 // -1: any number
		left      int64 // -1: for good
	}{
		{"one without bounds", Token{Claimed: 9}, true, -1, -1},
		{"one with claims", Token{Limit: 3, Claimed: 1, ExpiresAt: at.Add(90*time.Second + 1)}, true, 2, 90},
		{"one that is used up", Token{Limit: 3, Claimed: 3, ExpiresAt: at.Add(time.Second)}, true, 0, 1},
		{"one whose ledger got stricter", Token{Limit: 1, Claimed: 3, ExpiresAt: at}, false, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			remaining, left := int64(-1), int64(-1)
			if n := tc.token.Remaining(); n != nil {
				remaining = *n
			}
			if n := (Validity{Token: tc.token}).RemainingSeconds(at); n != nil {
				left = *n
			}
			relaytest.Equal(t, "whether the token is valid", tc.token.Valid(at), tc.valid)
			relaytest.Equal(t, "the claims that remain", remaining, tc.remaining)
			relaytest.Equal(t, "the seconds that remain", left, tc.left)
		})
	}
}

// FuzzCanonical holds that the canonical form of JSON is its own canonical form.
func FuzzCanonical(f *testing.F) {
	f.Add([]byte(`{"b":1.50,"a":["\u0041<&>",null,{}]}`))
	f.Add([]byte("\"\\ud800\xff\""))
	f.Fuzz(func(t *testing.T, text []byte) {
		once, err := canonical(json.RawMessage(text))
		if err != nil {
			return
		}
		twice, err := canonical(json.RawMessage(once))
		if err != nil || string(twice) != string(once) {
			t.Fatalf("%q becomes %q, then %q: %v", text, once, twice, err)
		}
	})
}
