package inventory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	document "github.com/penstock/penstock/config/inventory"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sim"
)

func TestSIMsOfAnInventory(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	const one, two sim.ICCID = "8944000000000000001", "8944000000000000002"
	declare := func(msisdn string) string {
		return `accounts: [{name: acme, sims: [{iccid: "8944000000000000001", msisdn: "` + msisdn + `", pin: "1234", service_4g: true}, {iccid: "8944000000000000002", current_state: active}]}]`
	}
	get := func(iccid sim.ICCID) sim.SIM {
		t.Helper()
		s, err := f.db.SIMs.Get(ctx, 1, iccid)
		relaytest.NoError(t, err)
		return s
	}
	f.applied(declare("447700900001"), document.Mode{})
	relaytest.Equal(t, "the states of the SIMs", []sim.State{get(one).State, get(two).State}, []sim.State{sim.Pending, sim.Active})
	relaytest.Equal(t, "whether the first has 4G", get(one).Service4G, true)
	relaytest.Equal(t, "its PIN", get(one).Codes.PIN, "1234")
	_, err := f.db.SIMs.Change(ctx, 1, one, func(s *sim.SIM) error {
		s.State, s.Requested, s.Subscriber, s.Limit.Monthly = sim.Suspended, sim.Suspended, "ada", 7
		return nil
	})
	relaytest.NoError(t, err)
	f.applied(declare("447700900009"), document.Mode{})
	is := func(after string, state sim.State, subscriber string) {
		t.Helper()
		a := get(one)
		relaytest.Equal(t, "the state after "+after, a.State, state)
		relaytest.Equal(t, "the subscriber after "+after, a.Subscriber, subscriber)
		relaytest.Equal(t, "the number after "+after, a.MSISDN, "447700900009")
		relaytest.Equal(t, "the limit after "+after, a.Limit.Monthly, 7)
	}
	is("another apply", sim.Suspended, "ada")
	f.applied(declare("447700900009"), document.Mode{Reset: []string{"sims"}})
	is("a reset", sim.Pending, "")
	done := f.applied(`accounts: [{name: acme, sims: [{iccid: "8944000000000000002"}]}, {name: globex, sims: [{iccid: "8944000000000000001"}]}]`, document.Mode{Prune: true, AllowRemovals: 100})
	if !slices.Contains(done.Removed, "account acme: SIM 8944000000000000001") {
		t.Errorf("removed were %q, want the first SIM too", done.Removed)
	}
	_, err = f.db.SIMs.Get(ctx, 1, one)
	relaytest.Equal(t, "the kind of error for the pruned SIM", relay.KindOf(err), relay.KindNotFound)
	s := relaytest.Must(f.db.SIMs.Get(ctx, 2, one))(t)
	relaytest.Equal(t, "the state at its new account", s.State, sim.Pending)
	relaytest.Equal(t, "the number at its new account", s.MSISDN, "")
}

// simDocument is a document of a name with SIMs of an account: their digits at the end,
// and what else is said of them.
func simDocument(name, acct string, sims ...string) string {
	for i, s := range sims {
		digits, more, _ := strings.Cut(s, " ")
		sims[i] = fmt.Sprintf(`{iccid: "89440000000000000%s", %s}`, digits, more)
	}
	return fmt.Sprintf("{document: %s, accounts: [{name: %s, sims: [%s]}]}", name, acct, strings.Join(sims, ", "))
}

func TestSIMsThatADocumentDoesNotConcernStayAsTheyAre(t *testing.T) {
	f := newFixture(t)
	f.applied(simDocument("a", "acme", "01 imsi: 234150000000001, msisdn: 447700900001, pin: 1234", "02 puk: 12345678"), document.Mode{})
	f.applied(simDocument("b", "acme", "03 imsi: 234150000000003"), document.Mode{})
	f.applied(simDocument("c", "globex", "04"), document.Mode{})
	declares := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, doc := range []string{"a", "b", "c"} {
			d, err := f.Document(t.Context(), doc, View{})
			if relay.KindOf(err) == relay.KindNotFound {
				continue // the document declares nothing
			}
			relaytest.NoError(t, err)
			for _, a := range d.Accounts {
				for _, s := range a.SIMs {
					got = append(got, doc+" "+a.Name+" "+s.ICCID[17:])
				}
			}
		}
		relaytest.Equal(t, "the declared SIMs "+what, got, want)
	}
	refused := func(body, path, says string) {
		t.Helper()
		if mistakes := f.refused(t, body, document.Mode{}).Error(); !strings.Contains(mistakes, path) || !strings.Contains(mistakes, says) {
			t.Errorf("%s: %s, want one at %s that says %s", body, mistakes, path, says)
		}
	}
	all := []string{"a acme 01", "a acme 02", "b acme 03", "c globex 04"}
	declares("at first", all...)
	refused(simDocument("b", "acme", "02"), "accounts[0].sims[0]", `SIM 8944000000000000002 belongs to the document "a"`)
	refused(simDocument("c", "globex", "01"), "accounts[0].sims[0].iccid", `already taken by account "acme" of the document "a"`)
	refused(simDocument("c", "globex", "05 imsi: 234150000000003"), "accounts[0].sims[0].imsi", `already taken by account "acme" of the document "b"`)
	refused(simDocument("c", "globex", `05 msisdn: "+447700900001"`), "accounts[0].sims[0].msisdn", `already taken by account "acme" of the document "a"`)
	declares("after refusals", all...)
	f.applied(simDocument("a", "acme", "02 pin: 4321"), document.Mode{})
	declares("after one of two was declared again", all...)
	joined := relaytest.Must(f.Document(t.Context(), "a", View{}))(t).Accounts[0].SIMs[1]
	relaytest.Equal(t, "whether the SIM has the PIN and the PUK of both documents", []bool{joined.PIN != "", joined.PUK != ""}, []bool{true, true})
	masked := f.applied(simDocument("a", "acme", "02 puk: masked:"), document.Mode{})
	relaytest.Equal(t, "what a mask changes", masked.Changed, []string{})
	f.applied(`{document: d, accounts: [{name: acme, relays: {geo: [{id: g, prefix: "4478", action: mvno, iccid: "8944000000000000003"}]}}]}`, document.Mode{})
	done := f.applied(simDocument("a", "acme", "02"), document.Mode{Prune: true, AllowRemovals: 2, Compare: true})
	relaytest.Equal(t, "what was pruned", done.Removed, []string{"account acme: SIM 8944000000000000001"})
	before, after := fmt.Sprint(done.Before), fmt.Sprint(done.After)
	if !strings.Contains(before, "8944000000000000001") || strings.Contains(after, "8944000000000000001") || strings.Contains(before+after, "12345678") {
		t.Errorf("compared:\n%s\n%s", before, after)
	}
	declares("after a prune", "a acme 02", "b acme 03", "c globex 04")
	f.applied(simDocument("b", "acme", "02"), document.Mode{Adopt: true})
	declares("after an adoption", "b acme 02", "b acme 03", "c globex 04")
	relaytest.NoError(t, f.Revoke(t.Context(), account.HashToken("no-token-of-anyone")))
	declares("after a token was revoked", "b acme 02", "b acme 03", "c globex 04")
}

// TestASIMThatAnotherDocumentNeedsIsInBothAccounts moves a SIM to another account while
// a relay of another document uses it in the first.
func TestASIMThatAnotherDocumentNeedsIsInBothAccounts(t *testing.T) {
	f := newFixture(t)
	const relay = `{document: d, accounts: [{name: acme, relays: {geo: [{id: g, prefix: "4478", action: mvno, iccid: "8944000000000000001"}]}}]}`
	f.applied(simDocument("a", "acme", "01 pin: 1234"), document.Mode{})
	f.applied(relay, document.Mode{})
	done := f.applied(simDocument("a", "globex", "01"), document.Mode{Prune: true, AllowRemovals: 1})
	relaytest.Equal(t, "the number of records kept and removed", []int{len(done.Kept), len(done.Removed)}, []int{1, 0})
	for range 2 {
		f.applied(relay, document.Mode{}) // the relay still finds its SIM
		sims, err := f.Store.SIMs(t.Context(), SIMSelection{All: true})
		relaytest.NoError(t, err)
		var accounts []string
		for _, s := range sims {
			accounts = append(accounts, s.Account)
		}
		relaytest.Equal(t, "the accounts of the SIM", accounts, []string{"acme", "globex"})
	}
}

// TestAnApplyWithoutChangesHasNoConflict applies a document again while another
// gateway is about to save.
func TestAnApplyWithoutChangesHasNoConflict(t *testing.T) {
	f := newFixture(t)
	f.applied(simDocument("a", "acme", "01"), document.Mode{})
	kept, err := f.Store.Merged(t.Context())
	relaytest.NoError(t, err)
	f.applied(simDocument("a", "acme", "01"), document.Mode{})
	relaytest.NoError(t, f.Revoke(t.Context(), account.HashToken("no-token-of-anyone")))
	again, err := f.Store.Merged(t.Context())
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the stored inventory", string(again), string(kept))
}
