package admin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/relaytest"
)

// saveMessages saves a message of account 1 with two parts for each number.
func (o *operatorAPI) saveMessages(numbers ...string) (messages []message.Message) {
	o.t.Helper()
	relaytest.NoError(o.t, o.db.Credit.Open(o.t.Context(), 1, 100, o.now))
	for _, number := range numbers {
		id, err := o.db.Messages.Reserve(o.t.Context(), 2)
		relaytest.NoError(o.t, err)
		messages = append(messages, message.Message{
			ID: id, Account: 1, Originator: "Shop", Destination: number, Coding: message.GSM, Origin: "rest", IP: "192.0.2.1",
			Report: message.Report{URL: "https://u:secret@example.com/?key=secret&c=%code"}, ReceivedAt: o.now, ScheduledFor: o.now,
			Parts: []message.Part{{Data: []byte("one"), Text: "one"}, {Data: []byte("two"), Text: "two"}},
		})
	}
	_, err := o.db.Messages.Save(o.t.Context(), message.OrderRecords{Account: 1, Messages: messages, Now: o.now})
	relaytest.NoError(o.t, err)
	return messages
}

// settle stores the outcomes of a message's parts at a carrier.
func (o *operatorAPI) settle(m message.Message, carrier string, states ...message.State) {
	o.t.Helper()
	_, err := o.db.Messages.MarkSending(o.t.Context(), []message.SendingParts{{Ref: m.Ref(), Parts: []int{0, 1}, Carrier: carrier, Now: o.now, LeaseEnd: o.now}})
	relaytest.NoError(o.t, err)
	var outcomes []message.Outcome
	for n, s := range states {
		outcomes = append(outcomes, message.Outcome{PartRef: message.PartRef{Ref: m.Ref(), Part: n}, State: s, Carrier: carrier, CarrierID: fmt.Sprintf("r%d", n), Reason: "because", At: o.now})
	}
	_, err = o.db.Messages.Settle(o.t.Context(), outcomes)
	relaytest.NoError(o.t, err)
}

// The reason of a pending part that is due is the current one.
func TestAPendingPartHasTheCurrentReason(t *testing.T) {
	s := &Surface{Deps: Deps{Now: func() time.Time { return time.Unix(100, 0) }}}
	reason := "waiting: carrier \"one\" is not bound"
	s.WaitReason = func(number string) string {
		if number == "44" {
			return reason
		}
		return ""
	}
	m := message.Message{Destination: "44", Parts: []message.Part{
		{State: message.Pending, ScheduledAt: time.Unix(99, 0), Reason: "slow"}, {State: message.Pending, ScheduledAt: time.Unix(101, 0), Reason: "later"},
		{State: message.Rejected, Reason: "no"},
	}}
	for number, want := range map[string]string{"44": reason + ", later, no", "49": "slow, later, no"} {
		var got []string
		m.Destination = number
		for _, p := range s.messageOf(&m).Parts {
			got = append(got, p.Reason)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("reasons for %s = %q, want %q", number, got, want)
		}
	}
}

func TestMessagesAreListed(t *testing.T) {
	o := newOperatorAPI(t)
	messages := o.saveMessages("447700900123", "447700900124", "447700900123")
	o.settle(messages[0], "smsc-1", message.Accepted, message.Unknown)
	o.settle(messages[1], message.Simulator, message.Accepted, message.Accepted)
	want := `200 {"data":[{"direction":"out","id":3,"account":1,"originator":"Shop","destination":"447700900124","coding":7,"flash":false,"replace":false,` +
		`"report_to":"https://u:***@example.com/?key=***\u0026c=***","origin":"rest","ip":"192.0.2.1","received_at":"2026-03-01T12:00:00Z","scheduled_for":"2026-03-01T12:00:00Z","code":8,"parts":[` +
		`{"id":3,"state":"accepted","simulated":true,"carrier":"simulator","carrier_id":"r0","reason":"because","report":"","data":"one","scheduled_at":"2026-03-01T12:00:00Z","changed_at":"2026-03-01T12:00:00Z"},` +
		`{"id":4,"state":"accepted","simulated":true,"carrier":"simulator","carrier_id":"r1","reason":"because","report":"","data":"two","scheduled_at":"2026-03-01T12:00:00Z","changed_at":"2026-03-01T12:00:00Z"}]}],"meta":{"next":""}}`
	if got := o.call("GET /admin/messages?account=1&number=%2B44+7700+900124", ""); strings.ReplaceAll(got, "&", `\u0026`) != want {
		t.Errorf("answer:\n got %s\nwant %s", got, want)
	}
	for query, ids := range map[string]string{
		"":                                   "[5 3 1]",
		"&limit=2":                           "[5 3]",
		"&limit=2&cursor=" + o.nextCursor(2): "[1]",
		"&state=unknown":                     "[1]",
		"&state=pending":                     "[5]",
		"&number=Shop&state=accepted":        "[3 1]",
		"&number=447700900":                  "[]",
		"&state=removed":                     "[]",
		"&direction=in":                      "[]",
		"&direction=in&state=unknown":        "[]",
		"&number=447700900123&limit=1":       "[5]",
	} {
		if got := o.list("GET /admin/messages?account=1" + query).ids(); fmt.Sprint(got) != ids {
			t.Errorf("messages of %s = %s, want %s", query, got, ids)
		}
	}
	if got := o.list("GET /admin/messages?account=2").ids(); len(got) > 0 {
		t.Errorf("messages of another account = %s, want none", got)
	}
	for _, query := range []string{"?account=x", "?account=1&state=lost", "?account=1&limit=0", "?account=1&cursor=x", "?direction=up"} {
		if got := o.call("GET /admin/messages"+query, ""); !strings.HasPrefix(got, "422") {
			t.Errorf("answer for %s = %s, want 422", query, got)
		}
	}
}

// nextCursor returns the cursor after the newest messages of account 1.
func (o *operatorAPI) nextCursor(limit int) string {
	o.t.Helper()
	return o.list(fmt.Sprintf("GET /admin/messages?account=1&limit=%d", limit)).Meta.Next
}

func TestSentAndReceivedMessagesAreMerged(t *testing.T) {
	o := newOperatorAPI(t)
	o.mustApply("accounts: [{name: acme, credit: 100}, {name: globex, credit: 100}]", "")
	var want []string
	for n := range 5 {
		o.accept(event.SMS, fmt.Sprintf("from 44770090012%d to 4490", n%2))
		want = append(want, fmt.Sprintf("in 44770090012%d 4490", n%2))
		o.now = o.now.Add(time.Second)
		acct := relay.AccountID(1 + n%2)
		id := relaytest.Must(o.db.Messages.Reserve(t.Context(), 1))(t)
		m := message.Message{
			ID: id, Account: acct, Originator: "Shop", Destination: "447700900121", Coding: message.GSM, Origin: "rest",
			ReceivedAt: o.now, ScheduledFor: o.now, Parts: []message.Part{{Data: []byte("one"), Text: "one"}},
		}
		_, err := o.db.Messages.Save(t.Context(), message.OrderRecords{Account: acct, Messages: []message.Message{m}, Now: o.now})
		relaytest.NoError(t, err)
		want = append(want, "out Shop 447700900121")
	}
	o.accept(event.Uplink, "from 447700900121 to a device")
	o.process()
	slices.Reverse(want)
	read := func(query string) (got []string) {
		t.Helper()
		for cursor := ""; ; {
			page := o.list("GET /admin/messages?limit=3&cursor=" + cursor + query)
			for _, m := range page.Data {
				got = append(got, fmt.Sprint(m["direction"], " ", m["originator"], " ", m["destination"]))
			}
			if cursor = page.Meta.Next; cursor == "" {
				return got
			}
		}
	}
	relaytest.Equal(t, "all messages", read(""), want)
	selected := func(part string) []string {
		return slices.DeleteFunc(slices.Clone(want), func(m string) bool { return !strings.Contains(m, part) })
	}
	relaytest.Equal(t, "sent messages", read("&direction=out"), selected("out "))
	relaytest.Equal(t, "received messages", read("&direction=in"), selected("in "))
	relaytest.Equal(t, "messages of a number", read("&number=447700900121"), selected("447700900121"))
	relaytest.Equal(t, "messages of a part of a number", len(read("&number=44770090012")), 0)
	relaytest.Equal(t, "sent messages in a state", read("&state=pending"), selected("out "))
	relaytest.Equal(t, "received messages in a state", read("&state=done"), selected("in "))
	relaytest.Equal(t, "sent messages in a state of received messages", len(read("&state=done&direction=out")), 0)
	relaytest.Equal(t, "unrouted messages", len(read("&state=unrouted")), 0)
	relaytest.Equal(t, "the events of a number", o.list("GET /admin/events?number=447700900121").ids(), []string{"s4", "s2"})
}

func TestAReceivedMessageHasTheNumbersOfThePost(t *testing.T) {
	o := newOperatorAPI(t)
	o.accept(event.SMS, "from Road to Rome to 4490")
	o.p.outcome = "routed from the relay to https://example.com"
	o.process()
	messages := o.list("GET /admin/messages?direction=in").Data
	relaytest.Equal(t, "the number of messages", len(messages), 1)
	relaytest.Equal(t, "the originator", messages[0]["originator"], any("Road to Rome"))
	relaytest.Equal(t, "the destination", messages[0]["destination"], any("4490"))
	e, _ := messages[0]["event"].(map[string]any)
	relaytest.Equal(t, "the outcome", e["outcome"], any(o.p.outcome))
	_, hasFrom := e["from"]
	relaytest.Equal(t, "the event has a member from", hasFrom, false)
}

func TestAListOfMessagesRefusesIDs(t *testing.T) {
	o := newOperatorAPI(t)
	for line, body := range map[string]string{"GET /admin/messages": `{"ids":["3"]}`, "GET /admin/messages?ids=3": ""} {
		if got := o.call(line, body); !strings.HasPrefix(got, `422 {"errors":{"ids":["This `) {
			t.Errorf("answer to %s %s = %s, want 422", line, body, got)
		}
	}
}

func TestOnlyPartsInStateUnknownAreResent(t *testing.T) {
	o := newOperatorAPI(t)
	messages := o.saveMessages("447700900123", "447700900124")
	o.settle(messages[0], "smsc-1", message.Accepted, message.Unknown)
	o.settle(messages[1], "smsc-1", message.Rejected, message.Accepted)
	const resend = "POST /admin/messages/resend"
	for body, want := range map[string]string{
		`{"account":1,"ids":["3","999"]}`: `200 {"count":0}`,
		`{"account":2,"ids":["1"]}`:       `200 {"count":0}`,
	} {
		if got := o.call(resend, body); got != want {
			t.Errorf("answer to %s = %s, want %s", body, got, want)
		}
	}
	if got := o.call(resend, `{"account":1,"ids":["1"]}`); got != `200 {"count":1}` {
		t.Errorf("answer = %s, want a count of 1", got)
	}
	m, err := o.db.Messages.Get(t.Context(), 1, 1)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the state of the first part", m.Parts[0].State, message.Accepted)
	relaytest.Equal(t, "the state of the second part", m.Parts[1].State, message.Pending)
	due, err := o.db.Messages.LeaseDue(t.Context(), o.now.Add(time.Minute), o.now.Add(2*time.Minute), 10)
	relaytest.NoError(t, err)
	if len(due) != 1 {
		t.Fatalf("due messages = %d, want 1", len(due))
	}
	relaytest.Equal(t, "the id of the due message", due[0].ID, 1)
	balance, err := o.db.Credit.Balance(t.Context(), 1)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the balance", balance, 96)
	for _, body := range []string{`{}`, `{"account":1}`, `{"account":1,"ids":["x"]}`, `{"account":1,"ids":[]}`, `{"ids":["1"]}`} {
		if got := o.call(resend, body); !strings.HasPrefix(got, "422") {
			t.Errorf("answer to %s = %s, want 422", body, got)
		}
	}
}
