package message

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// Events changes the status of receipts' events after they were journalled.
type Events interface {
	// Applied clears the unrouted state of receipts that have matched since.
	Applied(ctx context.Context, events []string) error
}

// ReceiptHandlerDeps are the dependencies of ReceiptHandler. All but Events,
// Logger and Now are required.
type ReceiptHandlerDeps struct {
	Events     Events // nil disables it
	Receipts   receiptStore
	Reports    reportStore
	Deliveries outbox.Sender
	Logger     *slog.Logger     // nil means slog.Default
	Now        func() time.Time // nil means time.Now
}

// ReceiptHandlerOptions are the options of ReceiptHandler; the zero value works.
type ReceiptHandlerOptions struct {
	// SweepEvery is the interval of the sweep for changes that a crash left
	// unreported; 0 means 10 s.
	SweepEvery time.Duration
}

// ReceiptHandler applies the receipts of networks to messages and sends delivery
// reports to accounts.
type ReceiptHandler struct {
	deps ReceiptHandlerDeps
	o    ReceiptHandlerOptions

	mu sync.Mutex
	// appliedNow are the events of early receipts that were applied since the last
	// sweep, appliedBefore those of the interval before it. An event may be marked as
	// unrouted shortly after its receipt was applied, so the mark is cleared once more
	// at the next sweep.
	appliedNow, appliedBefore []string
	// held are the receipts that were Held, at most maxHeld. They are matched again at
	// the next sweep.
	held []Receipt
}

// maxHeld bounds the memory of held receipts. Those beyond it stay unrouted.
const maxHeld = 10_000

// NewReceiptHandler returns a ReceiptHandler. Run sends reports that a crash
// left unsent.
func NewReceiptHandler(deps ReceiptHandlerDeps, o ReceiptHandlerOptions) (*ReceiptHandler, error) {
	if deps.Receipts == nil || deps.Reports == nil || deps.Deliveries.Store == nil {
		return nil, errors.New("messages: receipts, reports, deliveries and dispatcher are needed")
	}
	deps.Logger = cmp.Or(deps.Logger, slog.Default())
	if deps.Now == nil {
		deps.Now = time.Now
	}
	o.SweepEvery = cmp.Or(o.SweepEvery, 10*time.Second)
	return &ReceiptHandler{deps: deps, o: o}, nil
}

// Receive records receipts in order and sends the delivery reports. Receipts that
// name their Part are not matched. It returns the receipts with Found set; a
// receipt that is not Found waits for Bind, because it may arrive before the
// carrier's answer.
func (h *ReceiptHandler) Receive(ctx context.Context, receipts []Receipt) ([]Receipt, error) {
	var unnamed []Receipt
	var indices []int
	for i := range receipts {
		if receipts[i].Part.ID != 0 {
			receipts[i].Found = true
			continue
		}
		unnamed, indices = append(unnamed, receipts[i]), append(indices, i)
	}
	if len(unnamed) > 0 {
		matched, err := h.deps.Receipts.Match(ctx, unnamed)
		if err != nil {
			return nil, err
		}
		for k, i := range indices {
			receipts[i] = matched[k]
		}
	}
	if err := h.apply(ctx, receipts); err != nil {
		return receipts, err
	}
	h.hold(receipts)
	return receipts, nil
}

// Bind saves the ids of parts and applies the receipts that arrived before them.
func (h *ReceiptHandler) Bind(ctx context.Context, bindings []Binding) error {
	early, err := h.deps.Receipts.Bind(ctx, bindings)
	if err != nil {
		return err
	}
	if err := h.apply(ctx, early); err != nil {
		return err
	}
	h.hold(early)
	h.markFound(ctx, early)
	return nil
}

// hold keeps receipts that are Held for matchHeld.
func (h *ReceiptHandler) hold(receipts []Receipt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range receipts {
		if receipts[i].Held && len(h.held) < maxHeld {
			h.held = append(h.held, receipts[i])
		}
	}
}

// matchHeld matches held receipts again and applies those that are found.
func (h *ReceiptHandler) matchHeld(ctx context.Context) error {
	h.mu.Lock()
	held := h.held
	h.held = nil
	h.mu.Unlock()
	if len(held) == 0 {
		return nil
	}
	receipts, err := h.Receive(ctx, slices.Clone(held))
	if err != nil {
		h.hold(held)
		return err
	}
	h.markFound(ctx, receipts)
	return nil
}

// markFound marks the events of receipts that are Found as applied, now and at the next
// sweep.
func (h *ReceiptHandler) markFound(ctx context.Context, receipts []Receipt) {
	var events []string
	for i := range receipts {
		if receipts[i].Found && receipts[i].Event != "" {
			events = append(events, receipts[i].Event)
		}
	}
	h.markApplied(ctx, events)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.appliedNow = append(h.appliedNow, events...)
}

// markApplied marks events as applied.
func (h *ReceiptHandler) markApplied(ctx context.Context, events []string) {
	if len(events) == 0 || h.deps.Events == nil {
		return
	}
	if err := h.deps.Events.Applied(ctx, events); err != nil {
		h.deps.Logger.Warn("cannot remove the unrouted state of applied receipts", "count", len(events), "error", err)
	}
}

// markAppliedAgain clears the unrouted state of the events that were applied before
// the last sweep once more (see appliedBefore).
func (h *ReceiptHandler) markAppliedAgain(ctx context.Context) {
	h.mu.Lock()
	events := h.appliedBefore
	h.appliedNow, h.appliedBefore = nil, h.appliedNow
	h.mu.Unlock()
	h.markApplied(ctx, events)
}

// apply records receipts whose part is known. Two receipts of one message are
// recorded one after the other, so that each is reported.
func (h *ReceiptHandler) apply(ctx context.Context, receipts []Receipt) error {
	for len(receipts) > 0 {
		seen := make(map[Ref]bool, len(receipts))
		var now, next []Receipt
		for _, r := range receipts {
			switch {
			case !r.Found:
			case seen[r.Part.Ref]:
				next = append(next, r)
			default:
				seen[r.Part.Ref] = true
				now = append(now, r)
			}
		}
		if len(now) == 0 {
			return nil
		}
		unreported, err := h.deps.Receipts.Receive(ctx, now, h.deps.Now())
		if err != nil {
			return err
		}
		if err := h.SendReports(ctx, unreported); err != nil {
			h.deps.Logger.Warn("cannot create delivery reports; trying again", "count", len(unreported), "error", err)
		}
		receipts = next
	}
	return nil
}

// SendReports creates the delivery reports of messages, dispatches them and marks
// the messages as reported. It does not send a report twice.
func (h *ReceiptHandler) SendReports(ctx context.Context, ms []Message) error {
	var all []outbox.Delivery
	for i := range ms {
		ds, err := h.reports(&ms[i])
		if err != nil {
			h.deps.Logger.Error("cannot create delivery report", "account", ms[i].Account, "msg_id", ms[i].ID, "error", err)
			continue
		}
		all = append(all, ds...)
	}
	if len(ms) == 0 {
		return nil
	}
	if len(all) > 0 {
		if err := h.deps.Deliveries.Send(ctx, all); err != nil {
			return fmt.Errorf("reports: %w", err)
		}
	}
	return h.deps.Reports.MarkReported(ctx, ms)
}

// Run sends reports that a crash left unsent and deletes messages whose retention
// has ended, until ctx is done.
func (h *ReceiptHandler) Run(ctx context.Context) {
	tick := time.NewTicker(h.o.SweepEvery)
	defer tick.Stop()
	for {
		h.markAppliedAgain(ctx)
		if err := h.matchHeld(ctx); err != nil && ctx.Err() == nil {
			h.deps.Logger.Warn("cannot match receipts that were held; trying again", "error", err)
		}
		if err := h.sweep(ctx); err != nil && ctx.Err() == nil {
			h.deps.Logger.Warn("cannot create delivery reports; trying again", "error", err)
		}
		if err := h.deps.Reports.Forget(ctx, h.deps.Now()); err != nil && ctx.Err() == nil {
			h.deps.Logger.Warn("expired messages were not deleted", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// reportBatch is how many messages a sweep reads at a time.
const reportBatch = 500

func (h *ReceiptHandler) sweep(ctx context.Context) error {
	for {
		ms, err := h.deps.Reports.Unreported(ctx, h.deps.Now().Add(-h.o.SweepEvery), reportBatch)
		if err != nil || len(ms) == 0 {
			return err
		}
		if err := h.SendReports(ctx, ms); err != nil || len(ms) < reportBatch {
			return err
		}
	}
}
