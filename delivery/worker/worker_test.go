package worker

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/attempt"
	"github.com/penstock/penstock/delivery/email"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

// mailbox records mails and returns the same result for each.
type mailbox struct {
	result email.Result
	err    error
	mails  []outbox.Mail
}

func (m *mailbox) Send(_ context.Context, mail outbox.Mail) (email.Result, error) {
	m.mails = append(m.mails, mail)
	return m.result, m.err
}

func newWorker(t *testing.T, d Deps) *Worker {
	t.Helper()
	client := relaytest.Must(httpout.New(httpout.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}))(t)
	t.Cleanup(client.Close)
	d.HTTP = client
	if d.Mail == nil {
		d.Mail = &mailbox{}
	}
	return relaytest.Must(New(d))(t)
}

func secret(text string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(text))
}

func secrets(list ...string) func(context.Context, relay.AccountID) ([]string, error) {
	return func(context.Context, relay.AccountID) ([]string, error) { return list, nil }
}

func post(url string) outbox.Delivery {
	return outbox.Delivery{ID: "d1", Account: 3, Request: &outbox.Request{
		Method: "POST", URL: url, ContentType: "text/plain", Headers: map[string]string{"X-Own": "1"}, Body: []byte("Grüße"),
	}}
}

func TestARequestIsSignedWithEverySecret(t *testing.T) {
	old, current := secret("the old secret, 24 bytes or more"), secret("the new secret, 24 bytes or more")
	var header http.Header
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		body = make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
	}))
	t.Cleanup(s.Close)
	d := post(s.URL)
	r := newWorker(t, Deps{Secrets: secrets(current, old)}).Send(t.Context(), d)
	expectTime(t, r)
	relaytest.Equal(t, "the result", summaryOf(r), summary{Class: delivery.Delivered, Status: 200})
	for _, key := range []string{current, old} {
		library := relaytest.Must(webhooks.NewWebhook(key))(t)
		if err := library.Verify(body, header); err != nil {
			t.Errorf("verify with %s: %v", key, err)
		}
	}
	relaytest.Equal(t, "webhook-id", header.Get("webhook-id"), "d1")
	relaytest.Equal(t, "the number of signatures", len(strings.Fields(header.Get("webhook-signature"))), 2)
	relaytest.Equal(t, "the delivery's own header", header.Get("X-Own"), "1")
	relaytest.Equal(t, "the headers of the delivery afterwards", d.Request.Headers, map[string]string{"X-Own": "1"})
}

// summary is the part of a result that does not depend on the time and on texts.
type summary struct {
	Class     delivery.Class
	Status    int
	Simulated bool
}

func summaryOf(r attempt.Result) summary {
	return summary{r.Verdict.Class, r.Attempt.Status, r.Simulated}
}

func expectTime(t *testing.T, r attempt.Result) {
	t.Helper()
	if r.Attempt.At.IsZero() {
		t.Error("the attempt has no time")
	}
}

func TestSignaturesEqualThoseOfTheReferenceLibrary(t *testing.T) {
	key := secret("some secret of 24 bytes or more")
	library, raw := relaytest.Must(webhooks.NewWebhook(key))(t), relaytest.Must(parseSecret(key))(t)
	now := time.Unix(1_700_000_000, 5)
	for _, body := range []string{"", "x", `{"a":"é"}`} {
		want := relaytest.Must(library.Sign("id-1", now, []byte(body)))(t)
		relaytest.Equal(t, fmt.Sprintf("the signature of %q", body), webhookHeaders([][]byte{raw}, "id-1", now, []byte(body))["webhook-signature"], want)
	}
}

func TestARequestWithoutASecretHasAnIDAndNoSignature(t *testing.T) {
	var header http.Header
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { header = r.Header.Clone() }))
	t.Cleanup(s.Close)
	for name, load := range map[string]func(context.Context, relay.AccountID) ([]string, error){"no secrets": secrets(), "no function": nil} {
		r := newWorker(t, Deps{Secrets: load}).Send(t.Context(), post(s.URL))
		relaytest.Equal(t, name+": the class", r.Verdict.Class, delivery.Delivered)
		relaytest.Equal(t, name+": webhook-id", header.Get("webhook-id"), "d1")
		relaytest.Equal(t, name+": webhook-timestamp", header.Get("webhook-timestamp"), strconv.FormatInt(r.Attempt.At.Unix(), 10))
		relaytest.Equal(t, name+": webhook-signature", header.Get("webhook-signature"), "")
	}
}

func TestSecretsAreCachedWhileTheyCannotBeLoaded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("webhook-signature") == "" {
			w.WriteHeader(400)
		}
	}))
	t.Cleanup(s.Close)
	clock := relaytest.NewClock(time.Unix(1000, 0))
	loads, down := 0, errors.New("redis is down")
	var err error
	w := newWorker(t, Deps{Now: clock.Now, Secrets: func(context.Context, relay.AccountID) ([]string, error) {
		loads++
		return []string{secret("some secret of 24 bytes or more")}, err
	}})
	for i, step := range []struct {
		elapsed time.Duration
		err     error
		loads   int
	}{{0, nil, 1}, {time.Second, down, 1}, {time.Minute, down, 2}, {time.Second, down, 2}, {time.Minute, nil, 3}} {
		clock.Advance(step.elapsed)
		err = step.err
		r := w.Send(t.Context(), post(s.URL))
		relaytest.Equal(t, fmt.Sprintf("step %d: the verdict", i), r.Verdict, delivery.Verdict{Class: delivery.Delivered})
		relaytest.Equal(t, fmt.Sprintf("step %d: the number of loads", i), loads, step.loads)
	}
}

func TestResultsAreClassified(t *testing.T) {
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
		secrets func(context.Context, relay.AccountID) ([]string, error)
		want    delivery.Class
		status  int
	}{
		{"2xx is delivered", t.Context(), post(s.URL + "/"), nil, delivery.Delivered, 200},
		{"410 is dead", t.Context(), post(s.URL + "/gone"), nil, delivery.Dead, 410},
		{"503 retries", t.Context(), post(s.URL + "/busy"), nil, delivery.Retry, 503},
		{"a refused connection retries", t.Context(), post("http://127.0.0.1:1/"), nil, delivery.Retry, 0},
		{"an address that is not allowed is dead", t.Context(), post("http://10.0.0.1/"), nil, delivery.Dead, 0},
		{"a shutdown is a fault of the gateway", cancelled, post(s.URL + "/"), nil, delivery.Fault, 0},
		{"secrets that cannot be loaded are a fault of the gateway", t.Context(), post(s.URL + "/"),
			func(context.Context, relay.AccountID) ([]string, error) { return nil, errors.New("down") }, delivery.Fault, 0},
		{"an invalid secret is dead", t.Context(), post(s.URL + "/"), secrets("whsec_%"), delivery.Dead, 0},
		{"nothing to send is dead", t.Context(), outbox.Delivery{ID: "d"}, nil, delivery.Dead, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newWorker(t, Deps{Secrets: c.secrets}).Send(c.ctx, c.d)
			expectTime(t, r)
			relaytest.Equal(t, "the result", summaryOf(r), summary{Class: c.want, Status: c.status})
			if c.status == 503 {
				relaytest.Equal(t, "Retry-After", r.Verdict.RetryAfter, 7*time.Second)
				relaytest.Equal(t, "the response", r.Attempt.Response, "answer")
			}
			if (r.Attempt.Error != "") != (c.status == 0) {
				t.Errorf("error = %q with status %d, want an error only without a response", r.Attempt.Error, c.status)
			}
		})
	}
}

func TestAMailIsClassifiedByTheServersReply(t *testing.T) {
	d := outbox.Delivery{ID: "d", Mail: &outbox.Mail{To: "a@example.org", Subject: "s"}}
	cases := []struct {
		name      string
		box       mailbox
		want      delivery.Class
		simulated bool
	}{
		{"accepted", mailbox{result: email.Result{Status: 250, Response: "queued as 7"}}, delivery.Delivered, false},
		{"accepted by the sink", mailbox{result: email.Result{Status: 250, Simulated: true}}, delivery.Delivered, true},
		{"refused temporarily", mailbox{result: email.Result{Status: 451, Response: "later"}}, delivery.Retry, false},
		{"refused permanently", mailbox{result: email.Result{Status: 550, Response: "no such user"}}, delivery.Dead, false},
		{"the operator's server is down", mailbox{err: delivery.OwnFault(errors.New("no connection"))}, delivery.Fault, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newWorker(t, Deps{Mail: &c.box}).Send(t.Context(), d)
			relaytest.Equal(t, "the result", summaryOf(r), summary{Class: c.want, Status: c.box.result.Status, Simulated: c.simulated})
			relaytest.Equal(t, "the number of mails", len(c.box.mails), 1)
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
		decoded := relaytest.Must(parseSecret("whsec_" + base64.StdEncoding.EncodeToString(key)))(t)
		relaytest.Equal(t, "the key of the encoded key", decoded, key)
	})
}
