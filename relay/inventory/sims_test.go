package inventory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	document "github.com/penstock/penstock/config/inventory"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
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
		must(t, err)
		return s
	}
	f.applied(declare("447700900001"), document.Mode{})
	if a, b := get(one), get(two); a.State != sim.Pending || !a.Service4G || a.Codes.PIN != "1234" || b.State != sim.Active {
		t.Errorf("%+v %+v", a, b)
	}
	_, err := f.db.SIMs.Change(ctx, 1, one, func(s *sim.SIM) error {
		s.State, s.Requested, s.Subscriber, s.Limit.Monthly = sim.Suspended, sim.Suspended, "ada", 7
		return nil
	})
	must(t, err)
	f.applied(declare("447700900009"), document.Mode{})
	if a := get(one); a.State != sim.Suspended || a.Subscriber != "ada" || a.MSISDN != "447700900009" || a.Limit.Monthly != 7 {
		t.Errorf("applied again: %+v", a)
	}
	f.applied(declare("447700900009"), document.Mode{Reset: []string{"sims"}})
	if a := get(one); a.State != sim.Pending || a.Subscriber != "" || a.Limit.Monthly != 7 {
		t.Errorf("reset: %+v", a)
	}
	done := f.applied(`accounts: [{name: acme, sims: [{iccid: "8944000000000000002"}]}, {name: globex, sims: [{iccid: "8944000000000000001"}]}]`, document.Mode{Prune: true, AllowRemovals: 100})
	if !slices.Contains(done.Removed, "account acme: SIM 8944000000000000001") {
		t.Errorf("%q", done.Removed)
	}
	if _, err := f.db.SIMs.Get(ctx, 1, one); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("pruned: %v", err)
	}
	if s, err := f.db.SIMs.Get(ctx, 2, one); err != nil || s.State != sim.Pending || s.MSISDN != "" {
		t.Errorf("at its new account: %+v, %v", s, err)
	}
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
			d, err := f.Document(t.Context(), doc, false)
			if relay.KindOf(err) == relay.KindNotFound {
				continue // it declares nothing
			}
			must(t, err)
			for _, a := range d.Accounts {
				for _, s := range a.SIMs {
					got = append(got, doc+" "+a.Name+" "+s.ICCID[17:])
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", what, got)
		}
	}
	refused := func(body, path, says string) {
		t.Helper()
		_, err := f.Apply(t.Context(), []byte(body), document.Mode{})
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", body, err)
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
	declares("one of two again", all...)
	if d, err := f.Document(t.Context(), "a", false); err != nil || d.Accounts[0].SIMs[1].PIN == "" || d.Accounts[0].SIMs[1].PUK == "" {
		t.Errorf("codes are joined: %+v, %v", d, err)
	}
	if done := f.applied(simDocument("a", "acme", "02 puk: masked:"), document.Mode{}); len(done.Changed) > 0 {
		t.Errorf("a mask stands for what it hides: %+v", done)
	}
	f.applied(`{document: d, accounts: [{name: acme, relays: {geo: [{id: g, prefix: "4478", action: mvno, iccid: "8944000000000000003"}]}}]}`, document.Mode{})
	done := f.applied(simDocument("a", "acme", "02"), document.Mode{Prune: true, AllowRemovals: 2, Compare: true})
	if want := []string{"account acme: SIM 8944000000000000001"}; !slices.Equal(done.Removed, want) {
		t.Errorf("pruned: %+v", done)
	}
	before, after := fmt.Sprint(done.Before), fmt.Sprint(done.After)
	if !strings.Contains(before, "8944000000000000001") || strings.Contains(after, "8944000000000000001") || strings.Contains(before+after, "12345678") {
		t.Errorf("compared:\n%s\n%s", before, after)
	}
	declares("pruned", "a acme 02", "b acme 03", "c globex 04")
	f.applied(simDocument("b", "acme", "02"), document.Mode{Adopt: true})
	declares("adopted", "b acme 02", "b acme 03", "c globex 04")
	must(t, f.Revoke(t.Context(), account.HashToken("no-token-of-anyone")))
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
	if len(done.Kept) != 1 || len(done.Removed) != 0 {
		t.Errorf("%+v", done)
	}
	for range 2 {
		f.applied(relay, document.Mode{}) // it still finds its SIM
		sims, err := f.db.Accounts.DeclaredSIMs(t.Context(), account.WhichSIMs{All: true})
		must(t, err)
		if len(sims) != 2 || sims[0].Account != "acme" || sims[1].Account != "globex" {
			t.Errorf("%+v", sims)
		}
	}
}

// TestAnApplyThatChangesNothingConflictsWithNone applies a document again while another
// gateway is about to save.
func TestAnApplyThatChangesNothingConflictsWithNone(t *testing.T) {
	f := newFixture(t)
	f.applied(simDocument("a", "acme", "01"), document.Mode{})
	kept, err := f.db.Accounts.Inventory(t.Context())
	must(t, err)
	f.applied(simDocument("a", "acme", "01"), document.Mode{})
	must(t, f.Revoke(t.Context(), account.HashToken("no-token-of-anyone")))
	again, err := f.db.Accounts.Inventory(t.Context())
	must(t, err)
	if string(again) != string(kept) {
		t.Errorf("%s\n%s", kept, again)
	}
}

// TestSIMsOfAnEarlierVersionMove applies a document over an inventory that holds its
// SIMs itself.
func TestSIMsOfAnEarlierVersionMove(t *testing.T) {
	f := newFixture(t)
	f.applied(simDocument("a", "acme", "01 pin: 1234", "02"), document.Mode{})
	kept, err := f.db.Accounts.Inventory(t.Context())
	must(t, err)
	var set document.Set
	must(t, json.Unmarshal(kept, &set))
	set.Named[0].Accounts[0].SIMs = []document.SIM{{ICCID: "8944000000000000001", PIN: "1234"}, {ICCID: "8944000000000000003", PUK: "12345678"}}
	earlier, err := json.Marshal(set)
	must(t, err, f.db.Accounts.PutInventory(t.Context(), kept, earlier, account.SIMChanges{}))

	before := f.shown()
	if n := strings.Count(before, `"iccid"`); n != 3 {
		t.Fatalf("%d SIMs: %s", n, before)
	}
	f.applied(simDocument("b", "globex", "04"), document.Mode{})
	kept, err = f.db.Accounts.Inventory(t.Context())
	sims, err2 := f.db.Accounts.DeclaredSIMs(t.Context(), account.WhichSIMs{All: true})
	must(t, err, err2)
	if strings.Contains(string(kept), "iccid") || len(sims) != 4 || !strings.Contains(sims[0].Declared, "1234") || !strings.Contains(sims[2].Declared, "12345678") {
		t.Errorf("%s\n%+v", kept, sims)
	}
}
