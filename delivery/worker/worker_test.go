package worker

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/email"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
)

// mailbox answers every mail alike.
type mailbox struct {
	result email.Result
	err    error
	got    []outbox.Mail
}

func (m *mailbox) Send(_ context.Context, mail outbox.Mail) (email.Result, error) {
	m.got = append(m.got, mail)
	return m.result, m.err
}

func newWorker(t *testing.T, d Deps) *Worker {
	t.Helper()
	out, err := httpout.New(httpout.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	d.HTTP = out
	if d.Mail == nil {
		d.Mail = &mailbox{}
	}
	w, err := New(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func secret(text string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(text))
}

func secrets(list ...string) func(context.Context, account.ID) ([]string, error) {
	return func(context.Context, account.ID) ([]string, error) { return list, nil }
}

func post(url string) outbox.Delivery {
	return outbox.Delivery{ID: "d1", Account: 3, Request: &outbox.Request{
		Method: "POST", URL: url, ContentType: "text/plain", Headers: map[string]string{"X-Own": "1"}, Body: []byte("Grüße"),
	}}
}

func TestARequestIsSignedWithEverySecret(t *testing.T) {
	old, now := secret("the old secret, 24 bytes or more"), secret("the new secret, 24 bytes or more")
	var header http.Header
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		body = make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
	}))
	t.Cleanup(s.Close)
	d := post(s.URL)
	r := newWorker(t, Deps{Secrets: secrets(now, old)}).Send(t.Context(), d)
	if r.Verdict.Class != delivery.Delivered || r.Attempt.Status != 200 || r.Attempt.At.IsZero() || r.Simulated {
		t.Fatalf("got %+v", r)
	}
	for _, key := range []string{now, old} {
		library, err := webhooks.NewWebhook(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := library.Verify(body, header); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if header.Get("webhook-id") != "d1" || len(strings.Fields(header.Get("webhook-signature"))) != 2 || header.Get("X-Own") != "1" {
		t.Errorf("headers %v", header)
	}
	if len(d.Request.Headers) != 1 {
		t.Errorf("the delivery was changed: %v", d.Request.Headers)
	}
}

func TestOurSignatureIsTheLibrarys(t *testing.T) {
	key := secret("some secret of twenty-four bytes")
	library, err := webhooks.NewWebhook(key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := parseSecret(key)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_700_000_000, 5)
	for _, body := range []string{"", "x", `{"a":"é"}`} {
		want, err := library.Sign("id-1", at, []byte(body))
		if got := sign([][]byte{raw}, "id-1", at, []byte(body))["webhook-signature"]; err != nil || got != want {
			t.Errorf("%q: got %s, want %s (%v)", body, got, want, err)
		}
	}
}

func TestAnAccountWithoutSecretIsSentUnsigned(t *testing.T) {
	var header http.Header
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { header = r.Header.Clone() }))
	t.Cleanup(s.Close)
	for name, ask := range map[string]func(context.Context, account.ID) ([]string, error){"none": secrets(), "nobody": nil} {
		r := newWorker(t, Deps{Secrets: ask}).Send(t.Context(), post(s.URL))
		if r.Verdict.Class != delivery.Delivered || header.Get("webhook-id") != "" {
			t.Errorf("%s: %+v, headers %v", name, r, header)
		}
	}
}

func TestSecretsAreRememberedWhileTheyCannotBeAskedFor(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("webhook-signature") == "" {
			w.WriteHeader(400)
		}
	}))
	t.Cleanup(s.Close)
	clock := time.Unix(1000, 0)
	asked, down := 0, errors.New("redis is down")
	var fails error
	w := newWorker(t, Deps{Now: func() time.Time { return clock }, Secrets: func(context.Context, account.ID) ([]string, error) {
		asked++
		return []string{secret("some secret of twenty-four bytes")}, fails
	}})
	for i, step := range []struct {
		later time.Duration
		fails error
		asked int
	}{{0, nil, 1}, {time.Second, down, 1}, {time.Minute, down, 2}, {time.Second, down, 2}, {time.Minute, nil, 3}} {
		clock, fails = clock.Add(step.later), step.fails
		if r := w.Send(t.Context(), post(s.URL)); r.Verdict.Class != delivery.Delivered || asked != step.asked {
			t.Errorf("step %d: %+v, asked %d times, want %d", i, r.Verdict, asked, step.asked)
		}
	}
}

func TestVerdicts(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gone":
			w.WriteHeader(410)
		case "/busy":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(503)
		}
		_, _ = w.Write([]byte("answer"))
	}))
	t.Cleanup(s.Close)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	cases := []struct {
		name    string
		ctx     context.Context
		d       outbox.Delivery
		secrets func(context.Context, account.ID) ([]string, error)
		want    delivery.Class
		status  int
	}{
		{"2xx is delivered", t.Context(), post(s.URL + "/"), nil, delivery.Delivered, 200},
		{"410 is dead", t.Context(), post(s.URL + "/gone"), nil, delivery.Dead, 410},
		{"503 retries", t.Context(), post(s.URL + "/busy"), nil, delivery.Retry, 503},
		{"nobody listening retries", t.Context(), post("http://127.0.0.1:1/"), nil, delivery.Retry, 0},
		{"an address that is not allowed is dead", t.Context(), post("http://10.0.0.1/"), nil, delivery.Dead, 0},
		{"a shutdown is our own fault", cancelled, post(s.URL + "/"), nil, delivery.Fault, 0},
		{"secrets that cannot be asked for are our own fault", t.Context(), post(s.URL + "/"),
			func(context.Context, account.ID) ([]string, error) { return nil, errors.New("down") }, delivery.Fault, 0},
		{"a secret that is none is dead", t.Context(), post(s.URL + "/"), secrets("whsec_%"), delivery.Dead, 0},
		{"nothing to send is dead", t.Context(), outbox.Delivery{ID: "d"}, nil, delivery.Dead, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newWorker(t, Deps{Secrets: c.secrets}).Send(c.ctx, c.d)
			if r.Verdict.Class != c.want || r.Attempt.Status != c.status || r.Attempt.At.IsZero() {
				t.Errorf("got %+v", r)
			}
			if c.status == 503 && (r.Verdict.RetryAfter != 7*time.Second || r.Attempt.Response != "answer") {
				t.Errorf("got %+v", r)
			}
			if (r.Attempt.Error != "") != (c.status == 0) {
				t.Errorf("error %q", r.Attempt.Error)
			}
		})
	}
}

func TestAMailIsJudgedByTheServersAnswer(t *testing.T) {
	d := outbox.Delivery{ID: "d", Mail: &outbox.Mail{To: "a@example.org", Subject: "s"}}
	cases := []struct {
		name      string
		box       mailbox
		want      delivery.Class
		simulated bool
	}{
		{"taken", mailbox{result: email.Result{Status: 250, Response: "queued as 7"}}, delivery.Delivered, false},
		{"kept by the sink", mailbox{result: email.Result{Status: 250, Simulated: true}}, delivery.Delivered, true},
		{"put off", mailbox{result: email.Result{Status: 451, Response: "later"}}, delivery.Retry, false},
		{"refused", mailbox{result: email.Result{Status: 550, Response: "no such user"}}, delivery.Dead, false},
		{"the operator's server is down", mailbox{err: delivery.OwnFault(errors.New("no connection"))}, delivery.Fault, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newWorker(t, Deps{Mail: &c.box}).Send(t.Context(), d)
			if r.Verdict.Class != c.want || r.Simulated != c.simulated || len(c.box.got) != 1 || r.Attempt.Status != c.box.result.Status {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func FuzzParseSecret(f *testing.F) {
	f.Add("whsec_AAAA")
	f.Add("")
	f.Add("whsec_%")
	f.Fuzz(func(t *testing.T, s string) {
		key, err := parseSecret(s)
		if err != nil {
			return
		}
		again, err := parseSecret("whsec_" + base64.StdEncoding.EncodeToString(key))
		if err != nil || string(again) != string(key) {
			t.Errorf("%q: %x, then %x (%v)", s, key, again, err)
		}
	})
}
