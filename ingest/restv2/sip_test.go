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

// office hands archives out as it is told.
type office struct {
	asked string
	ready bool
	err   error
	file  []byte
}

func (o *office) Request(_ context.Context, acct relay.AccountID, a sip.Request) (sip.Order, error) {
	o.asked = fmt.Sprintf("%d %s..%s %q %q %v", acct, a.From.Format(time.RFC3339), a.To.Format(time.RFC3339), a.Email, a.Format, a.Single)
	return sip.Order{Handle: "h1", AskedAt: clock()}, o.err
}

func (o *office) Archive(_ context.Context, acct relay.AccountID, handle string) (bool, error) {
	o.asked = fmt.Sprintf("%d %s", acct, handle)
	return o.ready, o.err
}

func (o *office) Open(context.Context, string) (io.ReadCloser, int64, error) {
	if o.file == nil {
		return nil, 0, relay.Errorf(relay.KindNotFound, "none")
	}
	return io.NopCloser(bytes.NewReader(o.file)), int64(len(o.file)), nil
}

func TestArchivesAreRequested(t *testing.T) {
	a := newAPI(t)
	const path = "/v2/sip/cdr/request"
	for name, tc := range map[string]struct{ target, body, want string }{
		"date and time": {path, `{"from_date":"2026-11-01 08:00:00","to_date":"2026-11-02 09:00:00"}`, `1 2026-11-01T08:00:00Z..2026-11-02T09:00:00Z "" "" false`},
		"all there is":  {path, `{"from_date":"2026-11-01 08:00:00","to_date":"2026-11-02 09:00:00","email":"a@example.com","format":"UKv3a","single_file":true}`, `1 2026-11-01T08:00:00Z..2026-11-02T09:00:00Z "a@example.com" "UKv3a" true`},
		"RFC 3339":      {path, `{"from_date":"2026-11-01T08:00:00+01:00","to_date":"2026-11-02T09:00:00Z","single_file":null}`, `1 2026-11-01T07:00:00Z..2026-11-02T09:00:00Z "" "" false`},
		"days":          {path, `{"from_date":"2026-11-01","to_date":"2026-11-02"}`, `1 2026-11-01T00:00:00Z..2026-11-02T23:59:59Z "" "" false`},
		"in the query":  {path + "?from_date=2026-11-01&to_date=2026-11-02&single_file=true", "", `1 2026-11-01T00:00:00Z..2026-11-02T23:59:59Z "" "" true`},
	} {
		t.Run(name, func(t *testing.T) {
			a.is("acme", "POST", tc.target, tc.body, 200, `{"data":{"expires_at":"2026-11-20 11:34:15","handle":"h1"}}`)
			if a.sip.asked != tc.want {
				t.Error(a.sip.asked)
			}
		})
	}
	for name, tc := range map[string]struct{ body, errs string }{
		"nothing":                {`{}`, "from_date, to_date"},
		"dates that are none":    {`{"from_date":"2026-02-30","to_date":"soon"}`, "from_date, to_date"},
		"a date that is no text": {`{"from_date":20261101,"to_date":"2026-11-02"}`, "from_date"},
		"a time before phones":   {`{"from_date":"1066-10-14","to_date":"2026-11-02"}`, "from_date"},
		"no truth":               {`{"from_date":"2026-11-01","to_date":"2026-11-02","single_file":"maybe"}`, "single_file"},
		"no JSON":                {`{`, "body"},
	} {
		t.Run(name, func(t *testing.T) {
			a.sip.asked = ""
			code, got := a.ask("acme", "POST", path, tc.body)
			relaytest.Equal(t, "the status", code, 422)
			answertest.Contains(t, "the answer", got+"\n", `"errors":"`+tc.errs+"\"}\n")
			relaytest.Equal(t, "the number asked for", a.sip.asked, "")
		})
	}
	a.sip.err = relay.Invalid("to_date", "The to_date must not be before the from_date.")
	a.is("iot", "POST", path, `{}`, 403, `{"message":"This action is unauthorised."}`)
	a.is("nobody", "POST", path, `{}`, 401, `{"message":"Unauthenticated."}`)
}

func TestArchivesAreFetched(t *testing.T) {
	a := newAPI(t)
	const path = "/v2/sip/cdr/h1/download"
	a.is("globex", "GET", path, "", 202, `{"message":"The records are being prepared. Please try again later."}`)
	if a.sip.asked != "2 h1" {
		t.Error(a.sip.asked)
	}
	a.sip.ready, a.sip.file = true, []byte(strings.Repeat("PK-", 100_000))
	a.is("globex", "GET", path, "", 200, string(a.sip.file))
	a.sip.file = nil
	a.is("globex", "GET", path, "", 404, "")
	a.sip.err = relay.Errorf(relay.KindNotFound, "expired")
	a.is("globex", "GET", path, "", 404, "")
	a.sip.err = relay.Errorf(relay.KindUnavailable, "down")
	if code, body := a.ask("globex", "GET", path, ""); code != 503 {
		t.Errorf("%d %s", code, body)
	}
	a.is("iot", "GET", path, "", 403, `{"message":"This action is unauthorised."}`)
}

func TestSourceIPs(t *testing.T) {
	a := newAPI(t)
	const path = "/v2/sip/trunk/source-ips"
	relaytest.NoError(t, a.db.Trunks.PutTrunks(t.Context(), 1, []sip.Trunk{{SourceIPs: []string{"192.0.2.1"}}, {SourceIPs: []string{"192.0.2.2", "2001:db8::1"}}}))
	a.is("acme", "GET", path, "", 200, `{"data":[{"source_ips":["192.0.2.1"]},{"source_ips":["192.0.2.2","2001:db8::1"]}]}`)
	a.is("globex", "GET", path, "", 200, `{"data":[]}`)
	a.is("iot", "GET", path, "", 403, `{"message":"This action is unauthorised."}`)
	relaytest.NoError(t, a.db.Close())
	if code, body := a.ask("acme", "GET", path, ""); code != 503 {
		t.Errorf("%d %s", code, body)
	}
}
