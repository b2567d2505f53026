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

// Several batches are processed concurrently. Of two posts with the same id, the first is sent.
func TestTheFirstOfTwoPostsWithTheSameIDIsSent(t *testing.T) {
	f := newFlow(t, relayTo(1, inbound.Geographic, "g1", "44", inbound.HTTPGet, "http://geo/?m=%m"))
	const pairs = 200
	for i := range pairs {
		for _, text := range []string{"first", "second"} {
			e := intake.Entry{Account: 1, Source: "json", Path: "/inbound/sms/json",
				Body: fmt.Appendf(nil, `{"id":"m%d","from":"447700900123","to":"447811111111","text":"%s-%d"}`, i, text, i)}
			_, err := f.posts.Accept(t.Context(), &e)
			relaytest.NoError(t, err)
		}
	}
	f.waitProcessed(t)
	got, repeated := f.targets()
	relaytest.Equal(t, "the number of sent messages", len(got), pairs)
	relaytest.Equal(t, "the number of messages with several attempts", repeated, 0)
	for _, target := range got {
		if strings.Contains(target, "second") {
			t.Errorf("target of a second message: %s", target)
		}
	}
}

func TestMessagesOfDifferentCarriersHaveDifferentKeys(t *testing.T) {
	p := NewProcessor(&receiver{})
	key := func(e intake.Entry) string {
		item := newItem("n-1", 1, e)
		content, keys, err := p.Parse(&item)
		relaytest.NoError(t, err)
		if len(content.messages) == 1 {
			relaytest.Equal(t, "the id of the message", content.messages[0].ID, "n-1")
		}
		return fmt.Sprint(keys)
	}
	post, otherID := newPost("a"), newPost("b")
	otherSource := newPost("a")
	otherSource.Source, otherSource.Path = "json", "/inbound/sms/json/hq"
	relaytest.Equal(t, "the key of the same message", key(post), key(newPost("a")))
	if key(post) == key(otherID) {
		t.Error("messages with different ids have the same key")
	}
	if key(post) == key(otherSource) {
		t.Error("messages from different sources have the same key")
	}
	if got := key(intake.Entry{Body: []byte("{")}); got != "[]" {
		t.Errorf("keys of an invalid post = %s, want none", got)
	}
}

// delayedHandler delays the first receipt of each message, so that the second receipt is applied
// first unless it waits.
type delayedHandler struct {
	mu     sync.Mutex
	states map[message.PartRef][]message.State
}

func (d *delayedHandler) Receive(_ context.Context, receipts []message.Receipt) ([]message.Receipt, error) {
	if receipts[0].State == message.Buffered {
		for range 1000 {
			runtime.Gosched()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range receipts {
		receipts[i].Matched = true
		d.states[receipts[i].Part] = append(d.states[receipts[i].Part], receipts[i].State)
	}
	return receipts, nil
}

// A message that is buffered and then delivered is reported with both codes only if the receipts are
// applied in order.
func TestReceiptsOfOneMessageAreAppliedInOrder(t *testing.T) {
	handler := &delayedHandler{states: make(map[message.PartRef][]message.State)}
	log, err := journal.Open(t.TempDir(), journal.Options{})
	relaytest.NoError(t, err)
	posts, err := intake.New(event.Receipt, "n1", log, recordstest.Open(t).Statuses("n1"), NewReceiptProcessor(handler), intake.Options{Batch: 1, Logger: slog.New(slog.DiscardHandler)})
	relaytest.NoError(t, err)
	const messages = 200
	for i := range messages {
		for _, state := range []string{"ENROUTE", "DELIVRD"} {
			e := SimulatedReceipt(fmt.Sprintf("7-%d-0", 1001+i), state)
			_, err := posts.Accept(t.Context(), &e)
			relaytest.NoError(t, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- posts.Run(ctx) }()
	redistest.Await(t, "all entries are processed", func(context.Context) bool { return posts.Status().Lag == 0 })
	cancel()
	relaytest.NoError(t, <-ended)
	relaytest.NoError(t, log.Close())
	for part, states := range handler.states {
		if !slices.Equal(states, []message.State{message.Buffered, message.Delivered}) {
			t.Errorf("states of %s = %q, want buffered and delivered", part, states)
		}
	}
	if len(handler.states) != messages {
		t.Errorf("messages with receipts = %d, want %d", len(handler.states), messages)
	}
}
