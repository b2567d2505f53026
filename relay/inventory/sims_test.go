package inventory

import (
	"slices"
	"testing"

	"github.com/penstock/penstock/relay"
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
	f.applied(declare("447700900001"), Mode{})
	if a, b := get(one), get(two); a.State != sim.Pending || !a.Service4G || a.Codes.PIN != "1234" || b.State != sim.Active {
		t.Errorf("%+v %+v", a, b)
	}
	_, err := f.db.SIMs.Change(ctx, 1, one, func(s *sim.SIM) error {
		s.State, s.Requested, s.Subscriber, s.Limit.Monthly = sim.Suspended, sim.Suspended, "ada", 7
		return nil
	})
	must(t, err)
	f.applied(declare("447700900009"), Mode{})
	if a := get(one); a.State != sim.Suspended || a.Subscriber != "ada" || a.MSISDN != "447700900009" || a.Limit.Monthly != 7 {
		t.Errorf("applied again: %+v", a)
	}
	f.applied(declare("447700900009"), Mode{Reset: []string{"sims"}})
	if a := get(one); a.State != sim.Pending || a.Subscriber != "" || a.Limit.Monthly != 7 {
		t.Errorf("reset: %+v", a)
	}
	done := f.applied(`accounts: [{name: acme, sims: [{iccid: "8944000000000000002"}]}, {name: globex, sims: [{iccid: "8944000000000000001"}]}]`, Mode{Prune: true, AllowRemovals: 100})
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
