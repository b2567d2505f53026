package main

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestSendsUnderKill sends twice as much as the credit pays for, all at a time,
// and kills the gateway in the middle: what was acknowledged is there, once, the
// rest is refused, and the ledger adds up. PENSTOCK_TEST_SENDS is how many
// messages (200; the figure is 1000).
func TestSendsUnderKill(t *testing.T) {
	count := numberFrom(t, "PENSTOCK_TEST_SENDS", 200)
	onEverySite(t, func(t *testing.T, s *site) {
		t.Parallel()
		g := newGateway(t, s, fmt.Sprintf("accounts: [{name: acme, credit: %d, tokens: [{token: acme-all}]}]", count/2))
		g.spawn()
		o := &orders{g: g, until: time.Now().Add(patience), sent: map[string]int64{}}
		half := make(chan struct{}, count)
		for n := range count {
			o.work.Go(func() { o.order(fmt.Sprintf("order %d of many", n)); half <- struct{}{} })
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

// order sends one text, far in the future, until the gateway has taken it or
// said that the credit does not pay for it.
func (o *orders) order(text string) {
	body := fmt.Sprintf(`{"destinations":["447700900123"],"message":%q,"send_time":%q}`, text, time.Now().Add(24*time.Hour).UTC().Format(time.DateTime))
	caller := o.g.as("").with("X-Auth-Token", "acme-all").with("Idempotency-Key", text)
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

// check compares what was acknowledged with what is there.
func (o *orders) check(t *testing.T, count int) {
	t.Helper()
	if len(o.sent) != count/2 || o.refused != count-count/2 {
		t.Errorf("%d were sent and %d refused", len(o.sent), o.refused)
	}
	there := map[string]int64{}
	for page := 1; ; page++ {
		var list struct{ Data []entry }
		o.g.as("").with("X-Auth-Token", "acme-all").get(fmt.Sprintf("/v2/sms/pending?per_page=500&page=%d", page)).into(t, &list)
		for _, e := range list.Data {
			if _, twice := there[e.Data]; twice {
				t.Errorf("%q is there twice", e.Data)
			}
			there[e.Data] = e.ID
		}
		if len(list.Data) < 500 {
			break
		}
	}
	same(t, "pending", fmt.Sprint(there), fmt.Sprint(o.sent))
	credit := o.g.ledger(t, 1)
	same(t, "what the ledger comes to", fmt.Sprint(credit.Meta.Balance), "0")
	same(t, "entries of the ledger", fmt.Sprint(len(credit.Data)), fmt.Sprint(count/2+1))
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
