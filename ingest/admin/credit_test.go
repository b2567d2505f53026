package admin

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestCreditIsSetByTheInventory(t *testing.T) {
	o := newOperatorAPI(t)
	checkBalance := func(step string, want int64) {
		t.Helper()
		got, err := o.db.Credit.Balance(t.Context(), 1)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the balance after "+step, got, want)
	}
	const acme = `{"accounts":[{"id":1,"name":"acme","credit":100}]}`
	o.mustApply(acme, "")
	checkBalance("a new account", 100)
	_, err := o.db.Credit.Apply(t.Context(), credit.Change{ID: "x", Account: 1, Credits: -30, Reason: credit.Lookup, Reference: "447700900123", At: o.now})
	relaytest.NoError(t, err)
	o.mustApply(acme, "")
	checkBalance("a second apply", 70)
	o.mustApply(acme, "?reset=relays")
	checkBalance("a reset of relays", 70)
	o.mustApply(strings.Replace(acme, "100", "500", 1), "?reset=credit")
	checkBalance("a reset of credit", 500)
	o.mustApply(`{"accounts":[{"id":1,"name":"acme"}]}`, "?reset=credit")
	checkBalance("a reset without a declared credit", 500)
	o.mustApply(`{"accounts":[{"id":2,"name":"poor"}]}`, "")
	o.mustApply(`{"accounts":[{"id":2,"name":"poor","credit":9}]}`, "")
	if got := o.call("GET /admin/credit?account=2", ""); !strings.Contains(got, `"meta":{"balance":0,"next":""}`) {
		t.Errorf("answer = %s, want a balance of 0", got)
	}
	want := `200 {"data":[` +
		`{"sequence":3,"id":"ID","at":"2026-03-01T12:00:00Z","credits":430,"balance":500,"reason":"reset","reference":""},` +
		`{"sequence":2,"id":"x","at":"2026-03-01T12:00:00Z","credits":-30,"balance":70,"reason":"lookup","reference":"447700900123"}],` +
		`"meta":{"balance":500,"next":"2"}}`
	got := o.call("GET /admin/credit?account=1&limit=2", "")
	idStart := strings.Index(got, `"id":"`)
	if idStart < 0 {
		t.Fatalf("answer without an id: %s", got)
	}
	relaytest.Equal(t, "the history", got[:idStart+6]+"ID"+got[idStart+6+26:], want)
	answertest.Contains(t, "the second page", o.call("GET /admin/credit?account=1&limit=2&cursor=2", ""), `"sequence":1,"id":"opened"`, `"next":""`)
}
