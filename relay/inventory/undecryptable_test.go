package inventory

import (
	"testing"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAnUndecryptableRecordIsKept(t *testing.T) {
	f := newFixture(t)
	f.db.DB.SetSealer(dbtest.Sealer{})
	f.apply(keptFields, document.Mode{})
	restore := []func(){
		dbtest.Tamper(t, f.db.DB, "account", "doc", "name = 'acme'"),
		dbtest.Tamper(t, f.db.DB, "relay", "doc", "id = 'site-04'"),
		dbtest.Tamper(t, f.db.DB, "rule", "doc", "id = 'changed'"),
		dbtest.Tamper(t, f.db.DB, "declared_sim", "doc", "iccid = '8944000000000000001'"),
	}
	applied := f.apply(keptFields+"  - name: globex\n", document.Mode{})
	remedy := ": kept as it is; " + relay.ErrUndecryptable.Error()
	relaytest.Equal(t, "the records that the apply kept", applied.Kept, []string{
		"account acme" + remedy, "account acme: rules.changed" + remedy, "account acme: relays.site-04" + remedy,
	})
	relaytest.Equal(t, "the records that the apply added", applied.Added, []string{"account globex"})
	for _, r := range restore[:3] { // the apply has replaced the row of the SIM
		r()
	}
	ctx := t.Context()
	a, err := f.db.Accounts.AccountByName(ctx, "acme")
	relaytest.NoError(t, err)
	r, err := f.db.Inbound.Get(ctx, 1, inbound.Geographic, "site-04")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "callback URL and relay endpoint", []string{a.CallbackURL, r.Action.Parameters[0]}, []string{"https://example.com/first", "https://example.com/first"})
	relaytest.Equal(t, "the records that a further apply keeps", f.apply(keptFields, document.Mode{}).Kept, []string{})
}
