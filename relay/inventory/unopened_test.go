package inventory

import (
	"testing"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestARecordThatDoesNotOpenStaysAsItIs(t *testing.T) {
	f := newFixture(t)
	f.db.DB.SetSealer(dbtest.Sealer{})
	f.applied(keptFields, document.Mode{})
	restore := []func(){
		dbtest.Tamper(t, f.db.DB, "account", "doc", "name = 'acme'"),
		dbtest.Tamper(t, f.db.DB, "relay", "doc", "id = 'site-04'"),
		dbtest.Tamper(t, f.db.DB, "rule", "doc", "id = 'changed'"),
		dbtest.Tamper(t, f.db.DB, "declared_sim", "doc", "iccid = '8944000000000000001'"),
	}
	done := f.applied(keptFields+"  - name: globex\n", document.Mode{})
	remedy := ": kept as it is; " + relay.ErrUnopened.Error()
	relaytest.Equal(t, "what the apply kept", done.Kept, []string{
		"account acme" + remedy, "account acme: rules.changed" + remedy, "account acme: relays.site-04" + remedy,
	})
	relaytest.Equal(t, "what the apply added", done.Added, []string{"account globex"})
	for _, r := range restore[:3] { // the apply has declared the SIM again
		r()
	}
	ctx := t.Context()
	a, err := f.db.Accounts.AccountByName(ctx, "acme")
	relaytest.NoError(t, err)
	r, err := f.db.Inbound.Get(ctx, 1, inbound.Geographic, "site-04")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "callback and endpoint", []string{a.CallbackURL, r.Action.Parameters[0]}, []string{"https://example.com/first", "https://example.com/first"})
	relaytest.Equal(t, "what a further apply keeps", f.applied(keptFields, document.Mode{}).Kept, []string{})
}
