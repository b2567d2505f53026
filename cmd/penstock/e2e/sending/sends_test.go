package sending

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestSendsUnderKill sends twice as much as the credit pays for, all at a time,
// and kills the gateway in the middle: what was acknowledged is there, once, the
// rest is refused, the ledger adds up, and what was to be sent at once is
// delivered. PENSTOCK_TEST_SENDS is how many messages.
func TestSendsUnderKill(t *testing.T) {
	t.Parallel()
	count := e2e.Rounds(t, "PENSTOCK_TEST_SENDS", 60, 1000)
	e2e.OnEverySite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		g := e2e.NewGateway(t, s, fmt.Sprintf("accounts: [{name: acme, credit: %d, tokens: [{token: acme-all-0123456}]}]", count/2))
		g.Spawn()
		o := &orders{g: g, until: time.Now().Add(relaytest.Patience), sent: map[string]int64{}}
		half := make(chan struct{}, count)
		for n := range count {
			text := fmt.Sprintf("order %d, to be sent now", n)
			if n%2 == 1 {
				text = fmt.Sprintf("order %d, to be sent %s", n, e2e.TomorrowMark)
			}
			o.work.Go(func() { o.order(text); half <- struct{}{} })
		}
		for range count / 4 {
			<-half
		}
		g.Kill()
		g.Spawn()
		o.work.Wait()
		o.check(t, count)
		g.HTTP.CloseIdleConnections() // those that never carried a request, too
		g.EndCleanly()
	})
}

// orders are clients that repeat an order under its key until it is answered.
type orders struct {
	g     *e2e.Gateway
	until time.Time
	work  sync.WaitGroup

	mu      sync.Mutex
	sent    map[string]int64 // text → message id
	refused int
}

// order sends one text until the gateway has taken it or said that the credit
// does not pay for it.
func (o *orders) order(text string) {
	body := fmt.Sprintf(`{"destinations":["447700900123"],"message":%q}`, text)
	if strings.HasSuffix(text, e2e.TomorrowMark) {
		body = e2e.BodyForTomorrow(fmt.Sprintf(`"message":%q`, text))
	}
	caller := e2e.CustomerOf(o.g).With("Idempotency-Key", text)
	for time.Now().Before(o.until) {
		a, err := caller.Try(http.MethodPost, "/v2/sms/send", body)
		if err != nil || a.Status == http.StatusServiceUnavailable {
			<-time.After(50 * time.Millisecond)
			continue
		}
		o.answered(text, a)
		return
	}
	o.g.T.Errorf("%q has no answer", text)
}

func (o *orders) answered(text string, a e2e.Response) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a.Status == http.StatusPaymentRequired {
		o.refused++
		return
	}
	var list struct{ Data []e2e.PendingMessage }
	a.Decode(o.g.T, &list)
	if len(list.Data) != 1 || list.Data[0].Data != text {
		o.g.T.Errorf("%q: %s", text, a.Body)
		return
	}
	o.sent[text] = list.Data[0].ID
}

// check compares what was acknowledged with what is there and was delivered.
func (o *orders) check(t *testing.T, count int) {
	t.Helper()
	if len(o.sent) != count/2 || o.refused != count-count/2 {
		t.Errorf("%d were sent and %d refused", len(o.sent), o.refused)
	}
	credit := o.g.Credit(t, 1)
	relaytest.Equal(t, "what the ledger comes to", credit.Meta.Balance, 0)
	relaytest.Equal(t, "entries of the ledger", len(credit.Data), count/2+1)
	want := map[string]string{}
	for text := range o.sent {
		want[text] = "delivered"
		if strings.HasSuffix(text, e2e.TomorrowMark) {
			want[text] = "pending"
		}
	}
	relaytest.Eventually(t, "every message is where it should be", func() (any, bool) {
		there := o.there(t)
		return difference(there, want), maps.Equal(there, want)
	})
}

// difference names the messages that two maps differ in.
func difference(got, want map[string]string) (list []string) {
	for text, state := range got {
		if want[text] != state {
			list = append(list, text+": "+state)
		}
	}
	return append(list, fmt.Sprintf("%d of %d", len(got), len(want)))
}

// there are the texts of the account's messages and their states, each once.
func (o *orders) there(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, m := range e2e.List[e2e.SentParts](o.g.Admin(), "/admin/messages?account=1&limit=1000") {
		text := m.Parts[0].Data
		if found[text] != "" || o.sent[text] != m.ID {
			t.Errorf("%q is there as %d, acknowledged as %d", text, m.ID, o.sent[text])
		}
		found[text] = m.Parts[0].State
	}
	return found
}
