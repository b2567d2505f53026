package message

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

// exchange is the stores of a ReceiptHandler, with one message in them.
type exchange struct {
	m          Message
	early      []Receipt
	unreported []Message
	reported   int
	created    []outbox.Delivery
	sent       []string
	down       error
}

func (x *exchange) Bind(context.Context, []Binding) ([]Receipt, error) { return x.early, x.down }

func (x *exchange) Match(_ context.Context, receipts []Receipt) ([]Receipt, error) {
	for i := range receipts {
		r := &receipts[i]
		if r.Held = slices.Contains(r.IDs, "held"); r.Held {
			receipts[i].IDs = []string{"known"} // when it is matched again
		} else if slices.Contains(r.IDs, "known") {
			r.Found, r.Part = true, PartRef{Ref: x.m.Ref()}
		}
	}
	return receipts, x.down
}

func (x *exchange) Receive(_ context.Context, receipts []Receipt, now time.Time) (changed []Message, err error) {
	for _, r := range receipts {
		p := &x.m.Parts[r.Part.Part]
		if slices.Contains(r.State.From(), p.State) {
			p.State, p.Report, p.ChangedAt = r.State, r.Line, now
			if r.State == Buffered {
				p.BufferedAt = now
			}
			changed = append(changed, x.copy())
		}
	}
	return changed, x.down
}

func (x *exchange) copy() Message {
	m := x.m
	m.Parts = slices.Clone(m.Parts)
	return m
}

func (x *exchange) Forget(context.Context, time.Time) error { return nil }

func (x *exchange) Unreported(context.Context, time.Time, int) ([]Message, error) {
	ms := x.unreported
	x.unreported = nil
	return ms, x.down
}

func (x *exchange) MarkReported(_ context.Context, ms []Message) error {
	x.reported += len(ms)
	return nil
}

func (x *exchange) Create(_ context.Context, ds []outbox.Delivery, _ time.Time) (created []outbox.Delivery, err error) {
	for _, d := range ds {
		if !slices.ContainsFunc(x.created, func(old outbox.Delivery) bool { return old.ID == d.ID }) {
			created = append(created, d)
		}
	}
	x.created = append(x.created, created...)
	return created, x.down
}

func (x *exchange) Dispatch(ds []outbox.Delivery) {
	for _, d := range ds {
		x.sent = append(x.sent, d.Request.URL)
	}
}

// newExchange has a message of so many accepted parts, whose reports go to a URL.
func newExchange(t *testing.T, parts int, url string) (*ReceiptHandler, *exchange) {
	t.Helper()
	x := &exchange{m: Message{
		ID: 1001, Account: relay.AccountID(7), Destination: "447700900123", Originator: "Example", Report: Report{URL: url},
		ReceivedAt: time.Unix(1_700_000_000, 0),
	}}
	for range parts {
		x.m.Parts = append(x.m.Parts, Part{State: Accepted, Text: "a text of more than twenty letters"})
	}
	now := time.Unix(1_700_000_060, 0)
	n, err := NewReceiptHandler(ReceiptHandlerDeps{
		Receipts: x, Reports: x, Deliveries: outbox.Sender{Store: x, Dispatcher: x}, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
	}, ReceiptHandlerOptions{})
	relaytest.NoError(t, err)
	return n, x
}

func receipt(part int, s State) Receipt {
	return Receipt{Carrier: "one", IDs: []string{"x"}, State: s, Part: PartRef{Ref: Ref{Account: 7, ID: 1001}, Part: part}}
}

const dlr = "https://c.example/dlr?c=%code&i=%msgid"

func codes(x *exchange) string {
	var out []string
	for _, url := range x.sent {
		_, code, _ := strings.Cut(url, "c=")
		code, _, _ = strings.Cut(code, "&")
		out = append(out, code)
	}
	return strings.Join(out, " ")
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
		"delivered, with two receipts":           {1, dlr, []Receipt{receipt(0, Delivered), receipt(0, Delivered)}, "8 1"},
		"delivered, and buffered before":         {1, dlr, []Receipt{receipt(0, Delivered), receipt(0, Buffered)}, "8 1"},
		"rejected by the carrier at last":        {1, dlr, []Receipt{receipt(0, Rejected)}, "16"},
		"one part of two":                        {2, dlr, []Receipt{receipt(0, Delivered)}, "8"},
		"both parts":                             {2, dlr, []Receipt{receipt(1, Delivered), receipt(0, Delivered)}, "8 1"},
		"one part of two failed":                 {2, dlr, []Receipt{receipt(1, Undelivered), receipt(0, Delivered)}, "8 2"},
		"to nowhere":                             {1, "", []Receipt{receipt(0, Delivered)}, ""},
		"by an id that is known":                 {1, dlr, []Receipt{{IDs: []string{"other", "known"}, State: Delivered}}, "8 1"},
		"by one that is not":                     {1, dlr, []Receipt{{IDs: []string{"other"}, State: Delivered}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n, x := newExchange(t, tc.parts, tc.url)
			if _, err := n.Receive(t.Context(), tc.receipts); err != nil {
				t.Fatal(err)
			}
			relaytest.Equal(t, "the reported codes", codes(x), tc.want)
		})
	}
}

func TestAReportAsItIsDelivered(t *testing.T) {
	n, x := newExchange(t, 1, "https://c.example/dlr/%dest?c=%code&i=%msgid&t=%timestamp&l=%dlr")
	r := receipt(0, Delivered)
	r.Line = "id:9 stat:DELIVRD"
	if _, err := n.Receive(t.Context(), []Receipt{r}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"https://c.example/dlr/447700900123?c=8&i=1001&t=1700000060&l=id%3A1001%20sub%3A001%20dlvrd%3A000%20submit%20date%3A2311142213%20done%20date%3A2311142214%20stat%3AACCEPTD%20err%3A000%20text%3Aa%20text%20of%20more%20than%20",
		"https://c.example/dlr/447700900123?c=1&i=1001&t=1700000060&l=id%3A9%20stat%3ADELIVRD",
	}
	relaytest.Equal(t, "the requested URLs", x.sent, want)
	if len(x.created) != 2 {
		t.Fatalf("%d deliveries were created, want 2", len(x.created))
	}
	d := x.created[1]
	relaytest.Equal(t, "the second delivery", fmt.Sprintln(d.ID, d.Account, d.Kind, d.MessageID, d.Originator, d.Destination, d.Request.Method),
		"dlr-1001-1 7 receipt 1001 Example 447700900123 GET\n")
	relaytest.Equal(t, "the number of messages marked as reported", x.reported, 1)
}

func TestAReceiptThatCameBeforeItsIDIsFound(t *testing.T) {
	n, x := newExchange(t, 1, dlr)
	early := receipt(0, Delivered)
	early.Found = true
	x.early = []Receipt{early}
	relaytest.NoError(t, n.Bind(t.Context(), []Binding{{Carrier: "one", IDs: []string{"x"}}}))
	relaytest.Equal(t, "the reported codes", codes(x), "8 1")
}

// applied are the events that were recorded as applied.
type applied []string

func (n *applied) Applied(_ context.Context, events []string) error {
	*n = append(*n, events...)
	return nil
}

// The event of a receipt that came early may be quarantined before the receipt is
// applied, or after it.
func TestAReceiptThatCameBeforeItsIDDoesNotStayUnrouted(t *testing.T) {
	n, x := newExchange(t, 1, dlr)
	var events applied
	n.deps.Events = &events
	early := receipt(0, Delivered)
	early.Found, early.Event = true, "n1-r5"
	x.early = []Receipt{early}
	relaytest.NoError(t, n.Bind(t.Context(), []Binding{{Carrier: "one", IDs: []string{"x"}}}))
	relaytest.Equal(t, "the applied events", events, applied{"n1-r5"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, want := range []int{1, 2, 2} {
		n.Run(ctx) // sweeps once
		relaytest.Equal(t, "the number of applied events", len(events), want)
	}
}

func TestAHeldReceiptIsMatchedAgain(t *testing.T) {
	for name, early := range map[string]bool{"when it arrives": false, "when another id is bound": true} {
		t.Run(name, func(t *testing.T) {
			n, x := newExchange(t, 1, dlr)
			var events applied
			n.deps.Events = &events
			held := Receipt{Carrier: "one", IDs: []string{"held"}, State: Delivered, Event: "n1-r5"}
			if early {
				held.IDs, held.Held = []string{"known"}, true
				x.early = []Receipt{held}
				relaytest.NoError(t, n.Bind(t.Context(), []Binding{{Carrier: "one", IDs: []string{"x"}}}))
			} else {
				got, err := n.Receive(t.Context(), []Receipt{held})
				relaytest.NoError(t, err)
				relaytest.Equal(t, "whether it is found at once", got[0].Found, false)
			}
			relaytest.Equal(t, "the codes before", codes(x), "")
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			x.down = errors.New("down")
			n.Run(ctx) // sweeps once
			x.down = nil
			n.Run(ctx)
			relaytest.Equal(t, "the reported codes", codes(x), "8 1")
			relaytest.Equal(t, "the applied events", events, applied{"n1-r5"})
		})
	}
}

func TestUnreportedChangesAreReportedAfterACrash(t *testing.T) {
	n, x := newExchange(t, 1, dlr)
	x.unreported = []Message{x.copy()}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n.Run(ctx) // sweeps once
	relaytest.Equal(t, "the reported codes", codes(x), "8")
	relaytest.Equal(t, "the number of messages marked as reported", x.reported, 1)
}

func TestACodeThatACrashLeftUnreportedIsReportedBeforeTheNext(t *testing.T) {
	n, x := newExchange(t, 1, "https://c.example/?c=%code&t=%timestamp&l=%dlr")
	x.m.Parts[0].State, x.m.Parts[0].BufferedAt = Buffered, time.Unix(1_700_000_030, 0)
	r := receipt(0, Delivered)
	r.Line = "stat:DELIVRD"
	_, err := n.Receive(t.Context(), []Receipt{r})
	relaytest.NoError(t, err)
	if codes(x) != "8 4 1" {
		t.Fatalf("reported the codes %q, want 8 4 1", codes(x))
	}
	if got := x.sent[1]; !strings.Contains(got, "&t=1700000030&") || !strings.Contains(got, "ENROUTE") {
		t.Errorf("code 4 is reported as %s", got)
	}
}

func TestReceiptsFailWhileTheStoreIsDown(t *testing.T) {
	n, x := newExchange(t, 1, dlr)
	x.down = errors.New("down")
	if _, err := n.Receive(t.Context(), []Receipt{receipt(0, Delivered)}); !errors.Is(err, x.down) {
		t.Errorf("received: %v", err)
	}
	if err := n.Bind(t.Context(), nil); !errors.Is(err, x.down) {
		t.Errorf("bound: %v", err)
	}
	if err := n.SendReports(t.Context(), []Message{x.copy()}); !errors.Is(err, x.down) {
		t.Errorf("reported: %v", err)
	}
	if _, err := NewReceiptHandler(ReceiptHandlerDeps{}, ReceiptHandlerOptions{}); err == nil {
		t.Error("a receipt handler without stores was made")
	}
}
