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

// TestSendsUnderKill orders twice as many messages as the credit pays for, all at the same time, and
// kills the gateway after a quarter of the orders. Every acknowledged message is stored once, the
// other orders are refused, the credit adds up, and messages that are not scheduled are delivered.
// There are 60 orders, 1,000 in a soak, or PENSTOCK_TEST_SENDS.
func TestSendsUnderKill(t *testing.T) {
	t.Parallel()
	count := e2e.Rounds(t, "PENSTOCK_TEST_SENDS", 60, 1000)
	e2e.OnEverySite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		g := e2e.NewGateway(t, s, fmt.Sprintf("accounts: [{name: acme, credit: %d, tokens: [{token: acme-all-0123456}]}]", count/2))
		g.Spawn()
		o := &orders{g: g, deadline: time.Now().Add(relaytest.Patience), acceptedIDs: map[string]int64{}}
		completed := make(chan struct{}, count)
		for n := range count {
			text := fmt.Sprintf("order %d, to be sent now", n)
			if n%2 == 1 {
				text = fmt.Sprintf("order %d, to be sent %s", n, e2e.TomorrowMark)
			}
			o.requests.Go(func() { o.send(text); completed <- struct{}{} })
		}
		for range count / 4 {
			<-completed
		}
		g.Kill()
		g.Spawn()
		o.requests.Wait()
		o.check(t, count)
		g.HTTP.CloseIdleConnections() // including connections without a request
		g.TerminateCleanly()
	})
}

// orders sends orders. A client repeats each order with its Idempotency-Key until it has an answer.
type orders struct {
	g        *e2e.Gateway
	deadline time.Time
	requests sync.WaitGroup

	mu           sync.Mutex
	acceptedIDs  map[string]int64 // text → message id
	refusedCount int
}

// send sends the order of a text until the gateway accepts the order, or refuses it for lack of
// credit.
func (o *orders) send(text string) {
	body := fmt.Sprintf(`{"destinations":["447700900123"],"message":%q}`, text)
	if strings.HasSuffix(text, e2e.TomorrowMark) {
		body = e2e.BodyForTomorrow(fmt.Sprintf(`"message":%q`, text))
	}
	customer := e2e.CustomerOf(o.g).With("Idempotency-Key", text)
	for time.Now().Before(o.deadline) {
		resp, err := customer.Try(http.MethodPost, "/v2/sms/send", body)
		if err != nil || resp.Status == http.StatusServiceUnavailable {
			<-time.After(50 * time.Millisecond)
			continue
		}
		o.recordAnswer(text, resp)
		return
	}
	o.g.T.Errorf("%q: no answer before the deadline", text)
}

func (o *orders) recordAnswer(text string, resp e2e.Response) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if resp.Status == http.StatusPaymentRequired {
		o.refusedCount++
		return
	}
	var list struct{ Data []e2e.PendingMessage }
	resp.Decode(o.g.T, &list)
	if len(list.Data) != 1 || list.Data[0].Data != text {
		o.g.T.Errorf("%q: answer = %s, want one message with this text", text, resp.Body)
		return
	}
	o.acceptedIDs[text] = list.Data[0].ID
}

// check compares the acknowledged messages with the stored messages and their states.
func (o *orders) check(t *testing.T, count int) {
	t.Helper()
	if len(o.acceptedIDs) != count/2 || o.refusedCount != count-count/2 {
		t.Errorf("%d orders were accepted and %d refused, want one half of each", len(o.acceptedIDs), o.refusedCount)
	}
	credit := o.g.Credit(t, 1)
	relaytest.Equal(t, "the balance", credit.Meta.Balance, 0)
	relaytest.Equal(t, "the number of credit entries", len(credit.Data), count/2+1)
	want := map[string]string{}
	for text := range o.acceptedIDs {
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

// difference lists the messages of got with another state in want, and the numbers of messages.
func difference(got, want map[string]string) (list []string) {
	for text, state := range got {
		if want[text] != state {
			list = append(list, text+": "+state)
		}
	}
	return append(list, fmt.Sprintf("%d of %d", len(got), len(want)))
}

// states returns the states of the account's messages by text. It fails the test if a text is stored
// twice, or if the stored id differs from the acknowledged id.
func (o *orders) states(t *testing.T) map[string]string {
	t.Helper()
	states := map[string]string{}
	for _, m := range e2e.List[e2e.SentParts](o.g.Admin(), "/admin/messages?account=1&limit=1000") {
		text := m.Parts[0].Data
		if states[text] != "" || o.acceptedIDs[text] != m.ID {
			t.Errorf("%q is stored twice or with the id %d, acknowledged as %d", text, m.ID, o.acceptedIDs[text])
		}
		states[text] = m.Parts[0].State
	}
	return states
}
