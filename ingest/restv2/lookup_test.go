package restv2

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/lookup"
	"github.com/penstock/penstock/relay/relaytest"
)

// networks answers lookups with a configured result.
type networks struct {
	request string
	result  lookup.Result
	err     error
}

func (n *networks) Lookup(_ context.Context, acct relay.AccountID, number relay.MSISDN) (lookup.Result, error) {
	n.request = fmt.Sprintf("%d %s", acct, number)
	n.result.Number = number
	return n.result, n.err
}

func TestLookup(t *testing.T) {
	a := newAPI(t)
	const path = "/v2/network-lookup/447700900123"
	a.networks.result = lookup.Result{MCC: "234", MNC: "15", Network: "Example", Country: "UK", Contact: "noc", IMSI: "234150000000001", Ported: true}
	a.expect("globex", "GET", path, "", 200, `{"data":{"number":"447700900123","status":{"code":0,"description":"Delivered by the network"},"mcc":"234","mnc":"15","network":{"name":"Example","country":"UK","contact":"noc"},"imsi":"234150000000001","ported":true,"roaming":false}}`)
	relaytest.Equal(t, "the request", a.networks.request, "2 447700900123")
	a.networks.result = lookup.Result{Code: lookup.Unknown, Roaming: true}
	a.expect("acme", "GET", path, "", 200, `{"data":{"number":"447700900123","status":{"code":2,"description":"Unknown subscriber"},"mcc":"","mnc":"","network":{"name":"","country":"","contact":null},"imsi":null,"ported":false,"roaming":true}}`)
	for kind, status := range map[relay.Kind]int{relay.KindNoCredit: 402, relay.KindUnavailable: 503} {
		a.networks.err = relay.Errorf(kind, "because")
		if code, body := a.ask("acme", "GET", path, ""); code != status {
			t.Errorf("%s: %d %s", kind, code, body)
		}
	}
	a.expect("iot", "GET", path, "", 403, `{"message":"This action is unauthorised."}`)
	a.expect("nobody", "GET", path, "", 401, `{"message":"Unauthenticated."}`)
	a.networks.request = ""
	for _, bad := range []string{"+447700900123", "%2B447700900123", "0447700900123", "44-7700900123", "447700", "4477009001230000", "me"} {
		a.expect("acme", "GET", "/v2/network-lookup/"+bad, "", 422, `{"message":"The number must be 7 to 15 digits, country code first, without a plus sign or leading zeros.","errors":"number"}`)
	}
	if a.networks.request != "" {
		t.Errorf("%s was looked up", a.networks.request)
	}
}

func TestCredit(t *testing.T) {
	a := newAPI(t)
	relaytest.NoError(t, a.db.Credit.Open(t.Context(), 1, 250, time.Now()))
	a.expect("acme", "GET", "/v2/sms/credit", "", 200, `{"data":{"credit":250}}`)
	a.expect("globex", "GET", "/v2/sms/credit", "", 200, `{"data":{"credit":0}}`)
	a.expect("iot", "GET", "/v2/sms/credit", "", 403, `{"message":"This action is unauthorised."}`)
	relaytest.NoError(t, a.db.Close())
	if code, body := a.ask("acme", "GET", "/v2/sms/credit", ""); code != 503 {
		t.Errorf("while the database is down: %d %s, want 503", code, body)
	}
}
