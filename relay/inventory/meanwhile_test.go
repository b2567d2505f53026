package inventory

import (
	"context"
	"strings"
	"testing"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
)

const sharedWithREST = `
accounts:
  - name: acme
    callback_url: https://example.com/first
    relays:
      vmn: [{id: v1, number: "447860000001", action: http_get, parameters: ["https://example.com/first"]}]
    rules:
      - {id: changed, name: first, on: reading, actions: [{action: http_post, parameters: ["https://example.com/first"]}]}
      - {id: deleted, name: first, on: reading, actions: [{action: http_post, parameters: ["https://example.com/first"]}]}
`

// accountsRead, relaysRead and rulesRead call then after they have read a record that an
// apply is about to save.
type (
	accountsPort = Accounts // embedded under a name that none of its methods has
	rulesPort    = Rules
	accountsRead struct {
		accountsPort
		then func()
	}
	relaysRead struct {
		Relays
		then func()
	}
	rulesRead struct {
		rulesPort
		then func(id string)
	}
)

func (r accountsRead) AccountByName(ctx context.Context, name string) (account.Account, error) {
	defer r.then()
	return r.accountsPort.AccountByName(ctx, name)
}

func (r relaysRead) Get(ctx context.Context, acct relay.AccountID, k inbound.Kind, id string) (inbound.Relay, error) {
	defer r.then()
	return r.Relays.Get(ctx, acct, k, id)
}

func (r rulesRead) Rule(ctx context.Context, acct relay.AccountID, id string) (rule.Rule, error) {
	defer r.then(id)
	return r.rulesPort.Rule(ctx, acct, id)
}

// TestAnApplyKeepsWhatRESTChangesMeanwhile: REST has acknowledged these changes, so an
// apply that had already read the records may not undo them.
func TestAnApplyKeepsWhatRESTChangesMeanwhile(t *testing.T) {
	f := newFixture(t)
	f.applied(sharedWithREST, document.Mode{})
	const url = "https://example.com/rest"
	ctx := t.Context()
	f.Accounts = accountsRead{f.Accounts, func() { relaytest.NoError(t, f.db.Accounts.SetCallback(ctx, 1, url)) }}
	f.Relays = relaysRead{f.Relays, func() {
		_, err := f.db.Inbound.Change(ctx, 1, inbound.VirtualNumber, "v1", func(r *inbound.Relay) error {
			r.Action.Parameters = []string{url}
			return nil
		})
		relaytest.NoError(t, err)
	}}
	f.Rules = rulesRead{f.rules, func(id string) {
		if id != "changed" {
			return
		}
		r, err := f.rules.Rule(ctx, 1, id)
		relaytest.NoError(t, err)
		r.Actions[0].Parameters = []string{url}
		relaytest.NoError(t, f.rules.Declare(ctx, 1, r, func(*rule.Rule) bool { return false }))
	}}
	// The document changes, too: each record is about to be saved.
	second := strings.NewReplacer("example.com/first", "example.com/second", "447860000001", "447860000002").Replace(sharedWithREST)
	f.applied(second, document.Mode{})

	a, err := f.db.Accounts.Account(ctx, 1)
	v, err2 := f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	changed, err3 := f.rules.Rule(ctx, 1, "changed")
	relaytest.NoError(t, err, err2, err3)
	relaytest.Equal(t, "the callback URL", a.CallbackURL, url)
	relaytest.Equal(t, "the relay's number, which the document sets", v.Number, "447860000002")
	relaytest.Equal(t, "the relay's parameters", v.Action.Parameters, []string{url})
	relaytest.Equal(t, "the rule's parameters", changed.Actions[0].Parameters, []string{url})
}

// TestARuleThatRESTDeletesMeanwhileStaysDeleted: the document says of it what it said.
func TestARuleThatRESTDeletesMeanwhileStaysDeleted(t *testing.T) {
	f := newFixture(t)
	f.applied(sharedWithREST, document.Mode{})
	f.Rules = rulesRead{f.rules, func(id string) {
		if id == "deleted" {
			relaytest.NoError(t, f.rules.Delete(t.Context(), 1, id))
		}
	}}
	f.applied(sharedWithREST, document.Mode{})
	_, err := f.rules.Rule(t.Context(), 1, "deleted")
	relaytest.Equal(t, "the error for the deleted rule", relay.KindOf(err), relay.KindNotFound)
}
