package admin

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestCreditIsSetByTheInventory(t *testing.T) {
	o := newOffice(t)
	balance := func(after string, want int64) {
		t.Helper()
		got, err := o.db.Credit.Balance(t.Context(), 1)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the balance "+after, got, want)
	}
	const acme = `{"accounts":[{"id":1,"name":"acme","credit":100}]}`
	o.applied(acme, "")
	balance("a new account", 100)
	_, err := o.db.Credit.Apply(t.Context(), credit.Change{ID: "x", Account: 1, Credits: -30, Reason: credit.Lookup, Reference: "447700900123", At: o.now})
	relaytest.NoError(t, err)
	o.applied(acme, "")
	balance("the same again", 70)
	o.applied(acme, "?reset=relays")
	balance("a reset of something else", 70)
	o.applied(strings.Replace(acme, "100", "500", 1), "?reset=credit")
	balance("a reset", 500)
	o.applied(`{"accounts":[{"id":1,"name":"acme"}]}`, "?reset=credit")
	balance("a reset that names no credit", 500)
	o.applied(`{"accounts":[{"id":2,"name":"poor"}]}`, "")
	o.applied(`{"accounts":[{"id":2,"name":"poor","credit":9}]}`, "")
	if got := o.ask("GET /admin/credit?account=2", ""); !strings.Contains(got, `"meta":{"balance":0,"next":""}`) {
		t.Error(got)
	}
	want := `200 {"data":[` +
		`{"sequence":3,"id":"ID","at":"2026-03-01T12:00:00Z","credits":430,"balance":500,"reason":"reset","reference":""},` +
		`{"sequence":2,"id":"x","at":"2026-03-01T12:00:00Z","credits":-30,"balance":70,"reason":"lookup","reference":"447700900123"}],` +
		`"meta":{"balance":500,"next":"2"}}`
	got := o.ask("GET /admin/credit?account=1&limit=2", "")
	at := strings.Index(got, `"id":"`)
	if at < 0 {
		t.Fatalf("the answer has no id: %s", got)
	}
	relaytest.Equal(t, "the history", got[:at+6]+"ID"+got[at+6+26:], want)
	answertest.Contains(t, "the second page", o.ask("GET /admin/credit?account=1&limit=2&cursor=2", ""), `"sequence":1,"id":"opened"`, `"next":""`)
}
