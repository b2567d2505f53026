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
	const firstSIM, secondSIM sim.ICCID = "8944000000000000001", "8944000000000000002"
	documentWithNumber := func(msisdn string) string {
		return `accounts: [{name: acme, sims: [{iccid: "8944000000000000001", msisdn: "` + msisdn + `", pin: "1234", service_4g: true}, {iccid: "8944000000000000002", current_state: active}]}]`
	}
	get := func(iccid sim.ICCID) sim.SIM {
		t.Helper()
		s, err := f.db.SIMs.Get(ctx, 1, iccid)
		relaytest.NoError(t, err)
		return s
	}
	f.apply(documentWithNumber("447700900001"), document.Mode{})
	relaytest.Equal(t, "the states of the SIMs", []sim.State{get(firstSIM).State, get(secondSIM).State}, []sim.State{sim.Pending, sim.Active})
	relaytest.Equal(t, "whether the first SIM has 4G", get(firstSIM).Service4G, true)
	relaytest.Equal(t, "the PIN of the first SIM", get(firstSIM).Codes.PIN, "1234")
	_, err := f.db.SIMs.Change(ctx, 1, firstSIM, func(s *sim.SIM) error {
		s.State, s.RequestedState, s.Subscriber, s.Limit.Monthly = sim.Suspended, sim.Suspended, "ada", 7
		return nil
	})
	relaytest.NoError(t, err)
	f.apply(documentWithNumber("447700900009"), document.Mode{})
	wantFirst := func(step string, state sim.State, subscriber string) {
		t.Helper()
		a := get(firstSIM)
		relaytest.Equal(t, "the state after "+step, a.State, state)
		relaytest.Equal(t, "the subscriber after "+step, a.Subscriber, subscriber)
		relaytest.Equal(t, "the number after "+step, a.MSISDN, "447700900009")
		relaytest.Equal(t, "the limit after "+step, a.Limit.Monthly, 7)
	}
	wantFirst("another apply", sim.Suspended, "ada")
	f.apply(documentWithNumber("447700900009"), document.Mode{Reset: []string{"sims"}})
	wantFirst("a reset", sim.Pending, "")
	applied := f.apply(`accounts: [{name: acme, sims: [{iccid: "8944000000000000002"}]}, {name: globex, sims: [{iccid: "8944000000000000001"}]}]`, document.Mode{Prune: true, AllowRemovals: 100})
	if !slices.Contains(applied.Removed, "account acme: SIM 8944000000000000001") {
		t.Errorf("removed %q, want the first SIM among them", applied.Removed)
	}
	_, err = f.db.SIMs.Get(ctx, 1, firstSIM)
	relaytest.Equal(t, "the kind of error for the pruned SIM", relay.KindOf(err), relay.KindNotFound)
	s := relaytest.Must(f.db.SIMs.Get(ctx, 2, firstSIM))(t)
	relaytest.Equal(t, "the state in the new account", s.State, sim.Pending)
	relaytest.Equal(t, "the number in the new account", s.MSISDN, "")
}

// simDocument returns a document that declares SIMs of an account. Each element of sims has the
// last two digits of an ICCID and, after a blank, further fields.
func simDocument(name, acct string, sims ...string) string {
	for i, s := range sims {
		digits, fields, _ := strings.Cut(s, " ")
		sims[i] = fmt.Sprintf(`{iccid: "89440000000000000%s", %s}`, digits, fields)
	}
	return fmt.Sprintf("{document: %s, accounts: [{name: %s, sims: [%s]}]}", name, acct, strings.Join(sims, ", "))
}

func TestAnApplyChangesOnlyTheSIMsOfItsDocument(t *testing.T) {
	f := newFixture(t)
	f.apply(simDocument("a", "acme", "01 imsi: 234150000000001, msisdn: 447700900001, pin: 1234", "02 puk: 12345678"), document.Mode{})
	f.apply(simDocument("b", "acme", "03 imsi: 234150000000003"), document.Mode{})
	f.apply(simDocument("c", "globex", "04"), document.Mode{})
	wantDeclared := func(step string, want ...string) {
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
		relaytest.Equal(t, "the declared SIMs "+step, got, want)
	}
	wantRefused := func(body, path, text string) {
		t.Helper()
		if mistakes := f.applyInvalid(t, body, document.Mode{}).Error(); !strings.Contains(mistakes, path) || !strings.Contains(mistakes, text) {
			t.Errorf("%s: mistakes %s, want %q at %s", body, mistakes, text, path)
		}
	}
	allSIMs := []string{"a acme 01", "a acme 02", "b acme 03", "c globex 04"}
	wantDeclared("at first", allSIMs...)
	wantRefused(simDocument("b", "acme", "02"), "accounts[0].sims[0]", `SIM 8944000000000000002 belongs to the document "a"`)
	wantRefused(simDocument("c", "globex", "01"), "accounts[0].sims[0].iccid", `already taken by account "acme" of the document "a"`)
	wantRefused(simDocument("c", "globex", "05 imsi: 234150000000003"), "accounts[0].sims[0].imsi", `already taken by account "acme" of the document "b"`)
	wantRefused(simDocument("c", "globex", `05 msisdn: "+447700900001"`), "accounts[0].sims[0].msisdn", `already taken by account "acme" of the document "a"`)
	wantDeclared("after refusals", allSIMs...)
	f.apply(simDocument("a", "acme", "02 pin: 4321"), document.Mode{})
	wantDeclared("after one of two SIMs was declared again", allSIMs...)
	merged := relaytest.Must(f.Document(t.Context(), "a", View{}))(t).Accounts[0].SIMs[1]
	relaytest.Equal(t, "whether the SIM has the PIN and the PUK of both documents", []bool{merged.PIN != "", merged.PUK != ""}, []bool{true, true})
	masked := f.apply(simDocument("a", "acme", "02 puk: masked:"), document.Mode{})
	relaytest.Equal(t, "the changes of a masked PUK", masked.Changed, []string{})
	f.apply(`{document: d, accounts: [{name: acme, relays: {geo: [{id: g, prefix: "4478", action: mvno, iccid: "8944000000000000003"}]}}]}`, document.Mode{})
	applied := f.apply(simDocument("a", "acme", "02"), document.Mode{Prune: true, AllowRemovals: 2, Compare: true})
	relaytest.Equal(t, "the pruned SIMs", applied.Removed, []string{"account acme: SIM 8944000000000000001"})
	oldText, newText := fmt.Sprint(applied.Before), fmt.Sprint(applied.After)
	if !strings.Contains(oldText, "8944000000000000001") || strings.Contains(newText, "8944000000000000001") || strings.Contains(oldText+newText, "12345678") {
		t.Errorf("documents before and after:\n%s\n%s\nwant the pruned SIM only before, and no secret", oldText, newText)
	}
	wantDeclared("after a prune", "a acme 02", "b acme 03", "c globex 04")
	f.apply(simDocument("b", "acme", "02"), document.Mode{Adopt: true})
	wantDeclared("after an adoption", "b acme 02", "b acme 03", "c globex 04")
	relaytest.NoError(t, f.Revoke(t.Context(), account.HashToken("unknown-token")))
	wantDeclared("after a token was revoked", "b acme 02", "b acme 03", "c globex 04")
}

// TestAMovedSIMThatAnotherDocumentUsesIsInBothAccounts moves a SIM to another account while a relay
// of another document uses the SIM in the first account.
func TestAMovedSIMThatAnotherDocumentUsesIsInBothAccounts(t *testing.T) {
	f := newFixture(t)
	const relayDocument = `{document: d, accounts: [{name: acme, relays: {geo: [{id: g, prefix: "4478", action: mvno, iccid: "8944000000000000001"}]}}]}`
	f.apply(simDocument("a", "acme", "01 pin: 1234"), document.Mode{})
	f.apply(relayDocument, document.Mode{})
	applied := f.apply(simDocument("a", "globex", "01"), document.Mode{Prune: true, AllowRemovals: 1})
	relaytest.Equal(t, "the numbers of kept and removed records", []int{len(applied.Kept), len(applied.Removed)}, []int{1, 0})
	for range 2 {
		f.apply(relayDocument, document.Mode{}) // the relay still finds its SIM
		sims, err := f.Store.SIMs(t.Context(), SIMSelection{All: true})
		relaytest.NoError(t, err)
		var accounts []string
		for _, s := range sims {
			accounts = append(accounts, s.Account)
		}
		relaytest.Equal(t, "the accounts of the SIM", accounts, []string{"acme", "globex"})
	}
}

// TestAnApplyWithoutChangesHasNoConflict applies an unchanged document and revokes an unknown token:
// neither changes the stored inventory.
func TestAnApplyWithoutChangesHasNoConflict(t *testing.T) {
	f := newFixture(t)
	f.apply(simDocument("a", "acme", "01"), document.Mode{})
	oldInventory, err := f.Store.Merged(t.Context())
	relaytest.NoError(t, err)
	f.apply(simDocument("a", "acme", "01"), document.Mode{})
	relaytest.NoError(t, f.Revoke(t.Context(), account.HashToken("unknown-token")))
	newInventory, err := f.Store.Merged(t.Context())
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the stored inventory", string(newInventory), string(oldInventory))
}
