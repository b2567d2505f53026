package inventory

import (
	"strings"
	"testing"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
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

// TestAnApplyKeepsConcurrentChangesOverREST changes records after the apply has read them. The REST API
// has acknowledged these changes, so the apply must not undo them.
func TestAnApplyKeepsConcurrentChangesOverREST(t *testing.T) {
	f := newFixture(t)
	f.apply(sharedWithREST, document.Mode{})
	const url = "https://example.com/rest"
	ctx := t.Context()
	f.afterRead = func(record string) {
		switch record {
		case "account acme":
			relaytest.NoError(t, f.db.Accounts.SetCallback(ctx, 1, url))
		case "relay v1":
			_, err := f.db.Inbound.Change(ctx, 1, inbound.VirtualNumber, "v1", func(r *inbound.Relay) error {
				r.Action.Parameters = []string{url}
				return nil
			})
			relaytest.NoError(t, err)
		case "rule changed":
			r, err := f.rules.Rule(ctx, 1, "changed")
			relaytest.NoError(t, err)
			r.Actions[0].Parameters = []string{url}
			relaytest.NoError(t, f.rules.Declare(ctx, 1, r, func(*rule.Rule) bool { return false }))
		}
	}
	// The document changes all records, so the apply saves each of them.
	changedDocument := strings.NewReplacer("example.com/first", "example.com/second", "447860000001", "447860000002").Replace(sharedWithREST)
	f.apply(changedDocument, document.Mode{})

	a, err := f.db.Accounts.Account(ctx, 1)
	v, err2 := f.db.Inbound.Get(ctx, 1, inbound.VirtualNumber, "v1")
	changedRule, err3 := f.rules.Rule(ctx, 1, "changed")
	relaytest.NoError(t, err, err2, err3)
	relaytest.Equal(t, "the callback URL", a.CallbackURL, url)
	relaytest.Equal(t, "the relay number that the document sets", v.Number, "447860000002")
	relaytest.Equal(t, "the relay parameters", v.Action.Parameters, []string{url})
	relaytest.Equal(t, "the rule parameters", changedRule.Actions[0].Parameters, []string{url})
}

// TestAConcurrentlyDeletedRuleStaysDeleted deletes a rule whose declaration has not changed.
func TestAConcurrentlyDeletedRuleStaysDeleted(t *testing.T) {
	f := newFixture(t)
	f.apply(sharedWithREST, document.Mode{})
	f.afterRead = func(record string) {
		if record == "rule deleted" {
			relaytest.NoError(t, f.rules.Delete(t.Context(), 1, "deleted"))
		}
	}
	f.apply(sharedWithREST, document.Mode{})
	_, err := f.rules.Rule(t.Context(), 1, "deleted")
	relaytest.Equal(t, "the kind of error for the deleted rule", relay.KindOf(err), relay.KindNotFound)
}
