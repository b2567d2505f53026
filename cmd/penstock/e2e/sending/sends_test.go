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

// TestSendsUnderKill orders twice as many messages as the credit pays for, all at the same
// time, and kills the gateway in the middle. Every acknowledged message is stored once, the
// other orders are refused, the credit adds up, and messages without a later time are
// delivered. There are 60 messages, 1,000 in a soak, or PENSTOCK_TEST_SENDS.
func TestSendsUnderKill(t *testing.T) {
	t.Parallel()
	count := e2e.Rounds(t, "PENSTOCK_TEST_SENDS", 60, 1000)
	e2e.OnEverySite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		g := e2e.NewGateway(t, s, fmt.Sprintf("accounts: [{name: acme, credit: %d, tokens: [{token: acme-all-0123456}]}]", count/2))
		g.Spawn()
		o := &orders{g: g, deadline: time.Now().Add(relaytest.Patience), sent: map[string]int64{}}
		completed := make(chan struct{}, count)
		for n := range count {
			text := fmt.Sprintf("order %d, to be sent now", n)
			if n%2 == 1 {
				text = fmt.Sprintf("order %d, to be sent %s", n, e2e.TomorrowMark)
			}
			o.work.Go(func() { o.order(text); completed <- struct{}{} })
		}
		for range count / 4 {
			<-completed
		}
		g.Kill()
		g.Spawn()
		o.work.Wait()
		o.check(t, count)
		g.HTTP.CloseIdleConnections() // including those that never carried a request
		g.EndCleanly()
	})
}

// orders sends orders, each from a client that repeats it with its key until it is answered.
type orders struct {
	g        *e2e.Gateway
	deadline time.Time
	work     sync.WaitGroup

	mu      sync.Mutex
	sent    map[string]int64 // text → message id
	refused int
}

// order sends the order of a text until the gateway accepts it or refuses it for lack of
// credit.
func (o *orders) order(text string) {
	body := fmt.Sprintf(`{"destinations":["447700900123"],"message":%q}`, text)
	if strings.HasSuffix(text, e2e.TomorrowMark) {
		body = e2e.BodyForTomorrow(fmt.Sprintf(`"message":%q`, text))
	}
	caller := e2e.CustomerOf(o.g).With("Idempotency-Key", text)
	for time.Now().Before(o.deadline) {
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

// check compares the acknowledged messages with the stored and delivered ones.
func (o *orders) check(t *testing.T, count int) {
	t.Helper()
	if len(o.sent) != count/2 || o.refused != count-count/2 {
		t.Errorf("%d orders were accepted and %d refused, want one half of each", len(o.sent), o.refused)
	}
	credit := o.g.Credit(t, 1)
	relaytest.Equal(t, "the balance", credit.Meta.Balance, 0)
	relaytest.Equal(t, "the number of credit entries", len(credit.Data), count/2+1)
	want := map[string]string{}
	for text := range o.sent {
		want[text] = "delivered"
		if strings.HasSuffix(text, e2e.TomorrowMark) {
			want[text] = "pending"
		}
	}
	relaytest.Eventually(t, "every message has its final state", func() (any, bool) {
		states := o.states(t)
		return difference(states, want), maps.Equal(states, want)
	})
}

// difference lists the messages of got whose state is different in want, and the numbers of messages.
func difference(got, want map[string]string) (list []string) {
	for text, state := range got {
		if want[text] != state {
			list = append(list, text+": "+state)
		}
	}
	return append(list, fmt.Sprintf("%d of %d", len(got), len(want)))
}

// states returns the states of the account's messages by text. It fails the test if a text is
// stored twice or with another id than acknowledged.
func (o *orders) states(t *testing.T) map[string]string {
	t.Helper()
	states := map[string]string{}
	for _, m := range e2e.List[e2e.SentParts](o.g.Admin(), "/admin/messages?account=1&limit=1000") {
		text := m.Parts[0].Data
		if states[text] != "" || o.sent[text] != m.ID {
			t.Errorf("%q is stored twice or with the id %d, acknowledged as %d", text, m.ID, o.sent[text])
		}
		states[text] = m.Parts[0].State
	}
	return states
}
