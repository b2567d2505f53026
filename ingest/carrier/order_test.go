package carrier

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

// Several batches are in the works at once; of two posts with one id the first
// counts all the same.
func TestOfTwoPostsWithOneIDTheFirstCounts(t *testing.T) {
	f := newFlow(t, relayTo(1, inbound.Geographic, "g1", "44", inbound.HTTPGet, "http://geo/?m=%m"))
	const pairs = 200
	for i := range pairs {
		for _, text := range []string{"first", "second"} {
			e := intake.Entry{Account: 1, Source: "json", Path: "/inbound/sms/json",
				Body: fmt.Appendf(nil, `{"id":"m%d","from":"447700900123","to":"447811111111","text":"%s-%d"}`, i, text, i)}
			_, err := f.in.Accept(t.Context(), &e)
			relaytest.NoError(t, err)
		}
	}
	f.settled(t)
	got, twice := f.targets()
	relaytest.Equal(t, "the number of messages sent", len(got), pairs)
	relaytest.Equal(t, "the number of messages sent twice", twice, 0)
	for _, target := range got {
		if strings.Contains(target, "second") {
			t.Errorf("the second message of a pair was sent to %s", target)
		}
	}
}

func TestMessagesOfDifferentCarriersHaveDifferentKeys(t *testing.T) {
	p := NewProcessor(&receiver{})
	key := func(e intake.Entry) string {
		it := item("n-1", 1, e)
		content, keys, err := p.Parse(&it)
		relaytest.NoError(t, err)
		if len(content.messages) == 1 {
			relaytest.Equal(t, "the id of the message", content.messages[0].ID, "n-1")
		}
		return fmt.Sprint(keys)
	}
	same, other := posted("a"), posted("b")
	elsewhere := posted("a")
	elsewhere.Source, elsewhere.Path = "json", "/inbound/sms/json/hq"
	relaytest.Equal(t, "the key of the same message", key(same), key(posted("a")))
	if key(same) == key(other) {
		t.Error("messages with different ids have the same key")
	}
	if key(same) == key(elsewhere) {
		t.Error("messages from different sources have the same key")
	}
	if got := key(intake.Entry{Body: []byte("{")}); got != "[]" {
		t.Errorf("a post that cannot be read has keys: %s", got)
	}
}

// overtaking delays the first receipt of each message, so that the second overtakes
// it unless it waits.
type overtaking struct {
	mu  sync.Mutex
	got map[message.PartRef][]message.State
}

func (o *overtaking) Receive(_ context.Context, receipts []message.Receipt) ([]message.Receipt, error) {
	if receipts[0].State == message.Buffered {
		for range 1000 {
			runtime.Gosched()
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range receipts {
		receipts[i].Found = true
		o.got[receipts[i].Part] = append(o.got[receipts[i].Part], receipts[i].State)
	}
	return receipts, nil
}

// A message that is buffered and then delivered is reported with both codes only if
// its receipts are applied in order.
func TestReceiptsOfOneMessageAreAppliedInOrder(t *testing.T) {
	o := &overtaking{got: make(map[message.PartRef][]message.State)}
	log, err := journal.Open(t.TempDir(), journal.Options{})
	relaytest.NoError(t, err)
	in, err := intake.New(event.Receipt, "n1", log, recordstest.Open(t).Statuses("n1"), NewReceiptProcessor(o), intake.Options{Batch: 1, Logger: slog.New(slog.DiscardHandler)})
	relaytest.NoError(t, err)
	const messages = 200
	for i := range messages {
		for _, state := range []string{"ENROUTE", "DELIVRD"} {
			e := SimulatedReceipt(fmt.Sprintf("7-%d-0", 1001+i), state)
			_, err := in.Accept(t.Context(), &e)
			relaytest.NoError(t, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- in.Run(ctx) }()
	redistest.Await(t, "all is processed", func(context.Context) bool { return in.Status().Lag == 0 })
	cancel()
	relaytest.NoError(t, <-ended)
	relaytest.NoError(t, log.Close())
	for part, states := range o.got {
		if !slices.Equal(states, []message.State{message.Buffered, message.Delivered}) {
			t.Errorf("%s: %q", part, states)
		}
	}
	if len(o.got) != messages {
		t.Errorf("receipts of %d messages, want %d", len(o.got), messages)
	}
}
