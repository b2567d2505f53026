package message

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

// exchange is a store on SQLite with one message, and the dispatcher of delivery reports.
type exchange struct {
	store *Store
	m     Message
	sent  []outbox.Delivery
}

func (x *exchange) Dispatch(ds []outbox.Delivery) { x.sent = append(x.sent, ds...) }

func seconds(n int64) time.Time { return time.Unix(1_700_000_000+n, 0).UTC() }

// newExchange saves a message with accepted parts and a report URL. The carrier's id "known"
// is bound to the first part.
func newExchange(t *testing.T, parts int, url string) (*ReceiptHandler, *exchange) {
	t.Helper()
	database := dbtest.Open(t, db.Options{Now: func() time.Time { return seconds(60) }})
	relaytest.NoError(t, credit.NewStore(database).Open(t.Context(), 7, 100, seconds(0)))
	x := &exchange{store: NewStore(database), m: Message{
		ID: 1001, Account: 7, Destination: "447700900123", Originator: "Example", Report: Report{URL: url},
		ReceivedAt: seconds(0), ScheduledFor: seconds(0),
	}}
	for range parts {
		x.m.Parts = append(x.m.Parts, Part{Text: "a text of more than twenty letters"})
	}
	x.submit(t, &x.m)
	for n := range parts {
		part := PartRef{Ref: x.m.Ref(), Part: n}
		relaytest.Must(x.store.Settle(t.Context(), []Outcome{{PartRef: part, State: Accepted, Carrier: "one", At: seconds(10)}}))(t)
	}
	relaytest.Must(x.store.SaveCarrierIDs(t.Context(), []CarrierID{{Carrier: "one", ID: "known", Part: PartRef{Ref: x.m.Ref()}}}))(t)
	h, err := NewReceiptHandler(ReceiptHandlerDeps{
		Store: x.store, Deliveries: outbox.Sender{Store: outbox.NewStore(database), Dispatcher: x}, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return seconds(60) },
	})
	relaytest.NoError(t, err)
	return h, x
}

// submit saves a message and sets its parts to Sending.
func (x *exchange) submit(t *testing.T, m *Message) {
	t.Helper()
	relaytest.Must(x.store.Save(t.Context(), OrderRecords{Account: m.Account, Messages: []Message{*m}, Now: seconds(0)}))(t)
	sending := SendingParts{Ref: m.Ref(), Carrier: "one", Now: seconds(5), LeaseEnd: seconds(30)}
	for n := range m.Parts {
		sending.Parts = append(sending.Parts, n)
	}
	relaytest.Must(x.store.MarkSending(t.Context(), []SendingParts{sending}))(t)
}

// unreported returns the number of messages with unreported changes.
func (x *exchange) unreported(t *testing.T) int {
	t.Helper()
	return len(relaytest.Must(x.store.Unreported(t.Context(), seconds(1000), 10))(t))
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func receipt(part int, s State) Receipt {
	return Receipt{Carrier: "one", IDs: []string{"x"}, State: s, At: seconds(60), Part: PartRef{Ref: Ref{Account: 7, ID: 1001}, Part: part}}
}

const dlr = "https://c.example/dlr?c=%code&i=%msgid"

func codes(x *exchange) string {
	var list []string
	for _, url := range urls(x) {
		_, code, _ := strings.Cut(url, "c=")
		code, _, _ = strings.Cut(code, "&")
		list = append(list, code)
	}
	return strings.Join(list, " ")
}

func urls(x *exchange) (list []string) {
	for _, d := range x.sent {
		list = append(list, d.Request.URL)
	}
	return list
}

func TestReceiptsAreReportedAsCodes(t *testing.T) {
	for name, tc := range map[string]struct {
		parts    int
		url      string
		receipts []Receipt
		want     string
	}{
		"delivered":                              {1, dlr, []Receipt{receipt(0, Delivered)}, "8 1"},
		"refused by the phone":                   {1, dlr, []Receipt{receipt(0, Undelivered)}, "8 2"},
		"buffered, then delivered, in one batch": {1, dlr, []Receipt{receipt(0, Buffered), receipt(0, Delivered)}, "8 4 1"},
		"delivered, reported twice":              {1, dlr, []Receipt{receipt(0, Delivered), receipt(0, Delivered)}, "8 1"},
		"buffered after delivered":               {1, dlr, []Receipt{receipt(0, Delivered), receipt(0, Buffered)}, "8 1"},
		"rejected after the acceptance":          {1, dlr, []Receipt{receipt(0, Rejected)}, "16"},
		"one part of two delivered":              {2, dlr, []Receipt{receipt(0, Delivered)}, "8"},
		"both parts delivered":                   {2, dlr, []Receipt{receipt(1, Delivered), receipt(0, Delivered)}, "8 1"},
		"one part of two failed":                 {2, dlr, []Receipt{receipt(1, Undelivered), receipt(0, Delivered)}, "8 2"},
		"no report URL":                          {1, "", []Receipt{receipt(0, Delivered)}, ""},
		"by a known id":                          {1, dlr, []Receipt{{Carrier: "one", IDs: []string{"other", "known"}, State: Delivered, At: seconds(60)}}, "8 1"},
		"by an unknown id":                       {1, dlr, []Receipt{{Carrier: "one", IDs: []string{"other"}, State: Delivered, At: seconds(60)}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, x := newExchange(t, tc.parts, tc.url)
			if _, err := h.Receive(t.Context(), tc.receipts); err != nil {
				t.Fatal(err)
			}
			relaytest.Equal(t, "the reported codes", codes(x), tc.want)
		})
	}
}

func TestAReportIsDelivered(t *testing.T) {
	h, x := newExchange(t, 1, "https://c.example/dlr/%dest?c=%code&i=%msgid&t=%timestamp&l=%dlr")
	r := receipt(0, Delivered)
	r.Line = "id:9 stat:DELIVRD"
	if _, err := h.Receive(t.Context(), []Receipt{r}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"https://c.example/dlr/447700900123?c=8&i=1001&t=1700000060&l=id%3A1001%20sub%3A001%20dlvrd%3A000%20submit%20date%3A2311142213%20done%20date%3A2311142214%20stat%3AACCEPTD%20err%3A000%20text%3Aa%20text%20of%20more%20than%20",
		"https://c.example/dlr/447700900123?c=1&i=1001&t=1700000060&l=id%3A9%20stat%3ADELIVRD",
	}
	relaytest.Equal(t, "the requested URLs", urls(x), want)
	d := x.sent[1]
	relaytest.Equal(t, "the second delivery", fmt.Sprintln(d.ID, d.Account, d.Kind, d.MessageID, d.Originator, d.Destination, d.Request.Method),
		"dlr-1001-1 7 receipt 1001 Example 447700900123 GET\n")
	relaytest.Equal(t, "the number of unreported messages", x.unreported(t), 0)
}

// receivesEarly receives a receipt that arrives before its id is bound, and binds the id.
func receivesEarly(t *testing.T, h *ReceiptHandler) {
	t.Helper()
	early := Receipt{Carrier: "one", IDs: []string{"late"}, State: Delivered, At: seconds(60), Event: "n1-r5"}
	found := relaytest.Must(h.Receive(t.Context(), []Receipt{early}))(t)
	relaytest.Equal(t, "whether the early receipt is found", found[0].Matched, false)
	relaytest.NoError(t, h.SaveCarrierIDs(t.Context(), []CarrierID{{Carrier: "one", ID: "late", Part: PartRef{Ref: Ref{Account: 7, ID: 1001}}}}))
}

func TestAReceiptBeforeItsIDIsReported(t *testing.T) {
	h, x := newExchange(t, 1, dlr)
	receivesEarly(t, h)
	relaytest.Equal(t, "the reported codes", codes(x), "8 1")
}

// applied records the ids of applied events.
type applied []string

func (a *applied) SetApplied(_ context.Context, events []string) error {
	*a = append(*a, events...)
	return nil
}

// The event of an early receipt may become unrouted before or after the receipt is applied.
func TestAReceiptBeforeItsIDDoesNotStayUnrouted(t *testing.T) {
	h, _ := newExchange(t, 1, dlr)
	var events applied
	h.deps.Events = &events
	receivesEarly(t, h)
	relaytest.Equal(t, "the applied events", events, applied{"n1-r5"})
	for _, want := range []int{1, 2, 2} {
		h.sweep(t.Context())
		relaytest.Equal(t, "the number of applied events", len(events), want)
	}
}

// A receipt that matches a part by an id in another base is ambiguous while another message that
// it may be about has no answer.
func TestAHeldReceiptIsMatchedAgain(t *testing.T) {
	for name, bindsLater := range map[string]bool{"when it arrives": false, "when another id is bound": true} {
		t.Run("found "+name, func(t *testing.T) {
			h, x := newExchange(t, 1, dlr)
			var events applied
			h.deps.Events = &events
			unanswered := x.m
			unanswered.ID, unanswered.Report, unanswered.Parts = 2001, Report{}, []Part{{Text: "x"}}
			x.submit(t, &unanswered)
			receipt := Receipt{Carrier: "one", IDs: []string{"10"}, OtherBases: []string{"known"}, State: Delivered, At: seconds(60), Event: "n1-r5"}
			if bindsLater {
				receipt.OtherBases = []string{"16"}
			}
			found := relaytest.Must(h.Receive(t.Context(), []Receipt{receipt}))(t)
			relaytest.Equal(t, "whether the receipt is found at once", found[0].Matched, false)
			if bindsLater {
				relaytest.NoError(t, h.SaveCarrierIDs(t.Context(), []CarrierID{{Carrier: "one", ID: "16", Part: PartRef{Ref: x.m.Ref()}}}))
			}
			relaytest.Equal(t, "the codes before the answer", codes(x), "")
			relaytest.Must(x.store.Settle(t.Context(), []Outcome{{PartRef: PartRef{Ref: unanswered.Ref()}, State: Accepted, Carrier: "one", At: seconds(60)}}))(t)
			h.sweep(canceled(t))
			h.sweep(t.Context())
			relaytest.Equal(t, "the reported codes", codes(x), "8 1")
			relaytest.Equal(t, "the applied events", events, applied{"n1-r5"})
		})
	}
}

func TestUnreportedChangesAreReportedAfterACrash(t *testing.T) {
	h, x := newExchange(t, 1, dlr)
	relaytest.Equal(t, "the number of unreported messages after the crash", x.unreported(t), 1)
	h.sweep(t.Context())
	relaytest.Equal(t, "the reported codes", codes(x), "8")
	relaytest.Equal(t, "the number of unreported messages", x.unreported(t), 0)
}

func TestACodeLeftUnreportedByACrashIsReportedFirst(t *testing.T) {
	h, x := newExchange(t, 1, "https://c.example/?c=%code&t=%timestamp&l=%dlr")
	buffered := receipt(0, Buffered)
	buffered.At, buffered.Matched = seconds(30), true
	relaytest.Must(x.store.Receive(t.Context(), []Receipt{buffered}, seconds(30)))(t)
	r := receipt(0, Delivered)
	r.Line = "stat:DELIVRD"
	relaytest.Must(h.Receive(t.Context(), []Receipt{r}))(t)
	if codes(x) != "8 4 1" {
		t.Fatalf("reported codes = %q, want 8 4 1", codes(x))
	}
	if got := urls(x)[1]; !strings.Contains(got, "&t=1700000030&") || !strings.Contains(got, "ENROUTE") {
		t.Errorf("the report of code 4 lacks its time or its status: %s", got)
	}
}

func TestReceiptsFailWithoutTheStore(t *testing.T) {
	h, x := newExchange(t, 1, dlr)
	if _, err := h.Receive(canceled(t), []Receipt{receipt(0, Delivered)}); err == nil {
		t.Error("Receive returned no error")
	}
	if err := h.SaveCarrierIDs(canceled(t), []CarrierID{{Carrier: "one", ID: "x", Part: PartRef{Ref: x.m.Ref()}}}); err == nil {
		t.Error("SaveCarrierIDs returned no error")
	}
	m := relaytest.Must(x.store.Get(t.Context(), 7, x.m.ID))(t)
	if err := h.SendReports(canceled(t), []Message{m}); err == nil {
		t.Error("SendReports returned no error")
	}
	if _, err := NewReceiptHandler(ReceiptHandlerDeps{}); err == nil {
		t.Error("NewReceiptHandler without stores returned no error")
	}
}
