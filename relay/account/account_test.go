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
		if !customer.HasScope(s) {
			t.Errorf("a token with the default scopes lacks %s", s)
		}
	}
	relaytest.Equal(t, "whether a token with the default scopes has webhook and carrier", []bool{customer.HasScope(Webhook), customer.HasScope(Carrier)}, []bool{false, false})
	relaytest.Equal(t, "whether a token without scopes has the scope iot", (Token{}).HasScope(IoT), false)
}

func TestOnlyTheHashOfATokenIsStored(t *testing.T) {
	const want = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae" // sha256sum of foo
	if got := HashToken("foo"); got != want {
		t.Errorf("HashToken = %s, want %s", got, want)
	}
	encoded, err := json.Marshal(Token{Hash: HashToken("foo"), Account: 1})
	if err != nil || strings.Contains(string(encoded), "foo") {
		t.Errorf("encoded token = %s, error %v; want no text of the token", encoded, err)
	}
}

func TestPermissions(t *testing.T) {
	a := Account{Permissions: []string{"mvno"}}
	relaytest.Equal(t, "whether the account has the permission mvno and the empty one", []bool{a.HasPermission("mvno"), a.HasPermission("")}, []bool{true, false})
	relaytest.Equal(t, "whether an account without permissions has mvno", (Account{}).HasPermission("mvno"), false)
}
