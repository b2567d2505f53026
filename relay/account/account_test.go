package account

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestScopes(t *testing.T) {
	customer := Token{Scopes: DefaultScopes()}
	for _, s := range []Scope{Messaging, Cellular, IoT, Ledger} {
		if !customer.Has(s) {
			t.Errorf("a customer has no %s", s)
		}
	}
	if customer.Has(Webhook) || customer.Has(Carrier) || (Token{}).Has(IoT) {
		t.Error("a scope that was not named")
	}
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
	if !a.May("mvno") || a.May("") || (Account{}).May("mvno") {
		t.Error("permissions")
	}
	if ID(-7).String() != "-7" || ID(1<<40).String() != "1099511627776" {
		t.Error("numbers")
	}
}

// The store replaces the id in front of a record's JSON: it has to stand there.
func TestTheIDStandsFirst(t *testing.T) {
	b, err := json.Marshal(Account{ID: 42, Name: `{"id":7`})
	if err != nil || !strings.HasPrefix(string(b), `{"id":42,`) {
		t.Errorf("%s, %v", b, err)
	}
}
