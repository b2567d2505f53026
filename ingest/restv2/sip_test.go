package restv2

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sip"
)

// archives answers requests for CDR archives with configured results.
type archives struct {
	request string
	ready   bool
	err     error
	file    []byte
}

func (a *archives) Request(_ context.Context, acct relay.AccountID, r sip.Request) (sip.Order, error) {
	a.request = fmt.Sprintf("%d %s..%s %q %q %v", acct, r.From.Format(time.RFC3339), r.To.Format(time.RFC3339), r.Email, r.Format, r.Single)
	return sip.Order{Handle: "h1", RequestedAt: clock()}, a.err
}

func (a *archives) Archive(_ context.Context, acct relay.AccountID, handle string) (bool, error) {
	a.request = fmt.Sprintf("%d %s", acct, handle)
	return a.ready, a.err
}

func (a *archives) Open(context.Context, string) (io.ReadCloser, int64, error) {
	if a.file == nil {
		return nil, 0, relay.Errorf(relay.KindNotFound, "none")
	}
	return io.NopCloser(bytes.NewReader(a.file)), int64(len(a.file)), nil
}

func TestArchivesAreRequested(t *testing.T) {
	a := newAPI(t)
	const path = "/v2/sip/cdr/request"
	for name, tc := range map[string]struct{ target, body, want string }{
		"date and time": {path, `{"from_date":"2026-11-01 08:00:00","to_date":"2026-11-02 09:00:00"}`, `1 2026-11-01T08:00:00Z..2026-11-02T09:00:00Z "" "" false`},
		"all fields":    {path, `{"from_date":"2026-11-01 08:00:00","to_date":"2026-11-02 09:00:00","email":"a@example.com","format":"UKv3a","single_file":true}`, `1 2026-11-01T08:00:00Z..2026-11-02T09:00:00Z "a@example.com" "UKv3a" true`},
		"RFC 3339":      {path, `{"from_date":"2026-11-01T08:00:00+01:00","to_date":"2026-11-02T09:00:00Z","single_file":null}`, `1 2026-11-01T07:00:00Z..2026-11-02T09:00:00Z "" "" false`},
		"days":          {path, `{"from_date":"2026-11-01","to_date":"2026-11-02"}`, `1 2026-11-01T00:00:00Z..2026-11-02T23:59:59Z "" "" false`},
		"in the query":  {path + "?from_date=2026-11-01&to_date=2026-11-02&single_file=true", "", `1 2026-11-01T00:00:00Z..2026-11-02T23:59:59Z "" "" true`},
	} {
		t.Run(name, func(t *testing.T) {
			a.expect("acme", "POST", tc.target, tc.body, 200, `{"data":{"expires_at":"2026-11-20 11:34:15","handle":"h1"}}`)
			relaytest.Equal(t, "the request", a.sip.request, tc.want)
		})
	}
	for name, tc := range map[string]struct{ body, errs string }{
		"nothing":            {`{}`, "from_date, to_date"},
		"invalid dates":      {`{"from_date":"2026-02-30","to_date":"soon"}`, "from_date, to_date"},
		"a number as a date": {`{"from_date":20261101,"to_date":"2026-11-02"}`, "from_date"},
		"a date before 1970": {`{"from_date":"1066-10-14","to_date":"2026-11-02"}`, "from_date"},
		"an invalid boolean": {`{"from_date":"2026-11-01","to_date":"2026-11-02","single_file":"maybe"}`, "single_file"},
		"invalid JSON":       {`{`, "body"},
	} {
		t.Run(name, func(t *testing.T) {
			a.sip.request = ""
			code, got := a.ask("acme", "POST", path, tc.body)
			relaytest.Equal(t, "the status", code, 422)
			answertest.Contains(t, "the answer", got+"\n", `"errors":"`+tc.errs+"\"}\n")
			relaytest.Equal(t, "the request", a.sip.request, "")
		})
	}
	a.sip.err = relay.Invalid("to_date", "The to_date must not be before the from_date.")
	a.expect("acme", "POST", path, `{"from_date":"2026-11-02","to_date":"2026-11-01"}`, 422, `{"message":"The to_date must not be before the from_date.","errors":"to_date"}`)
	a.expect("iot", "POST", path, `{}`, 403, `{"message":"This action is unauthorised."}`)
	a.expect("nobody", "POST", path, `{}`, 401, `{"message":"Unauthenticated."}`)
}

func TestArchivesAreFetched(t *testing.T) {
	a := newAPI(t)
	const path = "/v2/sip/cdr/h1/download"
	a.expect("globex", "GET", path, "", 202, `{"message":"The records are being prepared. Please try again later."}`)
	relaytest.Equal(t, "the request", a.sip.request, "2 h1")
	a.sip.ready, a.sip.file = true, []byte(strings.Repeat("PK-", 100_000))
	a.expect("globex", "GET", path, "", 200, string(a.sip.file))
	a.sip.file = nil
	a.expect("globex", "GET", path, "", 404, "")
	a.sip.err = relay.Errorf(relay.KindNotFound, "expired")
	a.expect("globex", "GET", path, "", 404, "")
	a.sip.err = relay.Errorf(relay.KindUnavailable, "down")
	if code, body := a.ask("globex", "GET", path, ""); code != 503 {
		t.Errorf("while the store is down: %d %s, want 503", code, body)
	}
	a.expect("iot", "GET", path, "", 403, `{"message":"This action is unauthorised."}`)
}

func TestSourceIPs(t *testing.T) {
	a := newAPI(t)
	const path = "/v2/sip/trunk/source-ips"
	relaytest.NoError(t, a.db.Trunks.PutTrunks(t.Context(), 1, []sip.Trunk{{SourceIPs: []string{"192.0.2.1"}}, {SourceIPs: []string{"192.0.2.2", "2001:db8::1"}}}))
	a.expect("acme", "GET", path, "", 200, `{"data":[{"source_ips":["192.0.2.1"]},{"source_ips":["192.0.2.2","2001:db8::1"]}]}`)
	a.expect("globex", "GET", path, "", 200, `{"data":[]}`)
	a.expect("iot", "GET", path, "", 403, `{"message":"This action is unauthorised."}`)
	relaytest.NoError(t, a.db.Close())
	if code, body := a.ask("acme", "GET", path, ""); code != 503 {
		t.Errorf("while the store is down: %d %s, want 503", code, body)
	}
}
