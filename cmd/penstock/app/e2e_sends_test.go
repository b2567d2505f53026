package app

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSendsUnderKill sends twice as much as the credit pays for, all at a time,
// and kills the gateway in the middle: what was acknowledged is there, once, the
// rest is refused, the ledger adds up, and what was to be sent at once is
// delivered. PENSTOCK_TEST_SENDS is how many messages (200; the figure
// is 1000).
func TestSendsUnderKill(t *testing.T) {
	t.Parallel()
	count := numberFrom(t, "PENSTOCK_TEST_SENDS", 200)
	onEverySite(t, func(t *testing.T, s *site) {
		t.Parallel()
		g := newGateway(t, s, fmt.Sprintf("accounts: [{name: acme, credit: %d, tokens: [{token: acme-all-0123456}]}]", count/2))
		g.spawn()
		o := &orders{g: g, until: time.Now().Add(patience), sent: map[string]int64{}}
		half := make(chan struct{}, count)
		for n := range count {
			text := fmt.Sprintf("order %d, to be sent now", n)
			if n%2 == 1 {
				text = fmt.Sprintf("order %d, to be sent %s", n, tomorrow)
			}
			o.work.Go(func() { o.order(text); half <- struct{}{} })
		}
		for range count / 4 {
			<-half
		}
		g.kill()
		g.spawn()
		o.work.Wait()
		o.check(t, count)
		g.web.CloseIdleConnections() // those that never carried a request, too
		if code := g.terminate(); code != 0 {
			t.Errorf("exit code %d at the end", code)
		}
	})
}

// orders are clients that repeat an order under its key until it is answered.
type orders struct {
	g     *gateway
	until time.Time
	work  sync.WaitGroup

	mu      sync.Mutex
	sent    map[string]int64 // text → message id
	refused int
}

// tomorrow marks texts that are scheduled.
const tomorrow = "tomorrow"

// order sends one text until the gateway has taken it or said that the credit
// does not pay for it.
func (o *orders) order(text string) {
	body := fmt.Sprintf(`{"destinations":["447700900123"],"message":%q}`, text)
	if strings.HasSuffix(text, tomorrow) {
		body = later24(fmt.Sprintf(`"message":%q`, text))
	}
	caller := o.g.as("").with("X-Auth-Token", "acme-all-0123456").with("Idempotency-Key", text)
	for time.Now().Before(o.until) {
		a, err := caller.try(http.MethodPost, "/v2/sms/send", body)
		if err != nil || a.status == http.StatusServiceUnavailable {
			<-time.After(50 * time.Millisecond)
			continue
		}
		o.answered(text, a)
		return
	}
	o.g.t.Errorf("%q has no answer", text)
}

func (o *orders) answered(text string, a answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a.status == http.StatusPaymentRequired {
		o.refused++
		return
	}
	var list struct{ Data []entry }
	a.into(o.g.t, &list)
	if len(list.Data) != 1 || list.Data[0].Data != text {
		o.g.t.Errorf("%q: %s", text, a.body)
		return
	}
	o.sent[text] = list.Data[0].ID
}

// entry is a pending message.
type entry struct {
	ID                                  int64
	Source, Destination, Received, Data string
	ScheduledDelivery                   string `json:"scheduled_delivery"`
	OriginalScheduledDelivery           string `json:"original_scheduled_delivery"`
}

// check compares what was acknowledged with what is there and was delivered.
func (o *orders) check(t *testing.T, count int) {
	t.Helper()
	if len(o.sent) != count/2 || o.refused != count-count/2 {
		t.Errorf("%d were sent and %d refused", len(o.sent), o.refused)
	}
	credit := o.g.ledger(t, 1)
	same(t, "what the ledger comes to", fmt.Sprint(credit.Meta.Balance), "0")
	same(t, "entries of the ledger", fmt.Sprint(len(credit.Data)), fmt.Sprint(count/2+1))
	want := map[string]string{}
	for text := range o.sent {
		want[text] = "delivered"
		if strings.HasSuffix(text, tomorrow) {
			want[text] = "pending"
		}
	}
	eventually(t, "every message is where it should be", func() (any, bool) {
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
	for cursor := ""; ; {
		var page struct {
			Data []struct {
				ID    int64
				Parts []struct{ Data, State string }
			}
			Meta struct{ Next string }
		}
		o.g.admin().get("/admin/messages?account=1&limit=1000"+cursor).into(t, &page)
		for _, m := range page.Data {
			text := m.Parts[0].Data
			if found[text] != "" || o.sent[text] != m.ID {
				t.Errorf("%q is there as %d, acknowledged as %d", text, m.ID, o.sent[text])
			}
			found[text] = m.Parts[0].State
		}
		if page.Meta.Next == "" {
			return found
		}
		cursor = "&cursor=" + page.Meta.Next
	}
}

// creditList is an account's credit as the operator sees it.
type creditList struct {
	Data []struct {
		Credits, Balance  int64
		Reason, Reference string
	}
	Meta struct{ Balance int64 }
}

// ledger reads an account's credit and checks that it adds up.
func (g *gateway) ledger(t *testing.T, acct int) creditList {
	t.Helper()
	var l creditList
	g.admin().get(fmt.Sprintf("/admin/credit?account=%d&limit=1000", acct)).into(t, &l)
	sum := int64(0)
	for i := len(l.Data) - 1; i >= 0; i-- {
		if sum += l.Data[i].Credits; sum != l.Data[i].Balance || sum < 0 {
			t.Errorf("entry %+v, the sum is %d", l.Data[i], sum)
		}
	}
	if sum != l.Meta.Balance {
		t.Errorf("the balance is %d, the entries come to %d", l.Meta.Balance, sum)
	}
	return l
}
