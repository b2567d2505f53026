package account

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestScopes(t *testing.T) {
	customer := Token{Scopes: DefaultScopes()}
	for _, s := range []Scope{Messaging, Cellular, IoT, Ledger} {
		if !customer.Has(s) {
			t.Errorf("a customer has no %s", s)
		}
	}
	relaytest.Equal(t, "whether a customer has the scopes webhook and carrier", []bool{customer.Has(Webhook), customer.Has(Carrier)}, []bool{false, false})
	relaytest.Equal(t, "whether a token without scopes has the scope iot", (Token{}).Has(IoT), false)
}

func TestATokenIsKeptAsItsHash(t *testing.T) {
	const want = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae" // of foo, by sha256sum
	if got := HashToken("foo"); got != want {
		t.Error(got)
	}
	kept, err := json.Marshal(Token{Hash: HashToken("foo"), Account: 1})
	if err != nil || strings.Contains(string(kept), "foo") {
		t.Errorf("%s, %v", kept, err)
	}
}

func TestPermissions(t *testing.T) {
	a := Account{Permissions: []string{"mvno"}}
	relaytest.Equal(t, "whether the account may use mvno, and the empty permission", []bool{a.May("mvno"), a.May("")}, []bool{true, false})
	relaytest.Equal(t, "whether an account without permissions may use mvno", (Account{}).May("mvno"), false)
}

// The store replaces the id in front of a record's JSON: it has to stand there.
func TestTheIDStandsFirst(t *testing.T) {
	b, err := json.Marshal(Account{ID: 42, Name: `{"id":7`})
	if err != nil || !strings.HasPrefix(string(b), `{"id":42,`) {
		t.Errorf("%s, %v", b, err)
	}
}
