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

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// CarrierID is the id that a carrier returned for a part.
type CarrierID struct {
	Carrier string
	ID      string
	Part    PartRef
	Number  string // the message's destination; empty matches receipts about any number
}

// Receipt is a network's report about a part.
type Receipt struct {
	Carrier string `json:"carrier"`
	// IDs are the carrier's id, which comes first, and our reference.
	IDs []string `json:"ids"`
	// OtherBases are the carrier's id, written in other bases. Other messages may have these
	// ids.
	OtherBases []string `json:"other_bases,omitempty"`
	State      State    `json:"state"`
	// Numbers are the numbers of the receipt's sender and recipient. One of them is the
	// message's destination; an empty list matches any destination.
	Numbers []string `json:"numbers,omitempty"`
	// Destination is the message's destination if the protocol reports it.
	Destination string `json:"names,omitempty"`
	// Addresses are the addresses of the receipt's sender and recipient as received. If there
	// are two, one is the message's originator.
	Addresses []string `json:"addresses,omitempty"`
	// Event is the id of the receipt's event.
	Event   string    `json:"event,omitempty"`
	Line    string    `json:"line,omitempty"` // the carrier's receipt, see Part.Report
	At      time.Time `json:"at"`             // when the receipt arrived
	Part    PartRef   `json:"part,omitzero"`
	Matched bool      `json:"-"` // Part is set
	// Ambiguous means that the receipt matches a part only by OtherBases, and may be about another
	// part, for which the carrier has not yet returned an id.
	Ambiguous bool `json:"-"`
}

// Events changes the statuses of journalled events.
type Events interface {
	// SetApplied sets the events of receipts that have since matched a message from unrouted to done.
	SetApplied(ctx context.Context, events []string) error
}

// ReceiptHandlerDeps are the dependencies of ReceiptHandler. Store and Deliveries are
// required.
type ReceiptHandlerDeps struct {
	Events     Events // nil disables it
	Store      *Store
	Deliveries outbox.Sender
	Logger     *slog.Logger     // nil means slog.Default
	Now        func() time.Time // nil means time.Now
}

const (
	// sweepInterval is the interval at which Run repeats its work.
	sweepInterval = 10 * time.Second
	// sweepBatch is the number of messages that a sweep reads at a time.
	sweepBatch = 500
	// maxAmbiguous bounds the memory of ambiguous receipts. Further receipts stay unrouted.
	maxAmbiguous = 10_000
)

// ReceiptHandler applies the receipts of networks to messages and sends delivery reports to accounts.
type ReceiptHandler struct {
	deps ReceiptHandlerDeps

	mu sync.Mutex
	// appliedNow are the events of receipts that were matched late since the last sweep,
	// appliedBefore those of the interval before. An event may become unrouted shortly
	// after its receipt was applied, so the second sweep clears that state once more.
	appliedNow, appliedBefore []string
	ambiguous                 []Receipt // at most maxAmbiguous receipts, which the next sweep matches again
}

// NewReceiptHandler returns a ReceiptHandler. Run sends reports that a crash left unsent.
func NewReceiptHandler(deps ReceiptHandlerDeps) (*ReceiptHandler, error) {
	if deps.Store == nil || deps.Deliveries.Store == nil {
		return nil, errors.New("messages: Store and Deliveries are required")
	}
	deps.Logger = cmp.Or(deps.Logger, slog.Default())
	if deps.Now == nil {
		deps.Now = time.Now
	}
	return &ReceiptHandler{deps: deps}, nil
}

// Receive records receipts in order and sends the delivery reports. It matches the receipts
// without a Part, and returns all receipts with Matched set. A receipt that is not Matched
// waits for SaveCarrierIDs, because a receipt may arrive before the carrier's answer.
func (h *ReceiptHandler) Receive(ctx context.Context, receipts []Receipt) ([]Receipt, error) {
	for i := range receipts {
		receipts[i].Matched = receipts[i].Part.ID != 0
	}
	if slices.ContainsFunc(receipts, func(r Receipt) bool { return !r.Matched }) {
		var err error
		if receipts, err = h.deps.Store.Match(ctx, receipts); err != nil {
			return nil, err
		}
	}
	if err := h.apply(ctx, receipts); err != nil {
		return receipts, err
	}
	h.addAmbiguous(receipts)
	return receipts, nil
}

// SaveCarrierIDs saves the ids of parts and applies the receipts that arrived before them.
func (h *ReceiptHandler) SaveCarrierIDs(ctx context.Context, ids []CarrierID) error {
	early, err := h.deps.Store.SaveCarrierIDs(ctx, ids)
	if err != nil {
		return err
	}
	if err := h.apply(ctx, early); err != nil {
		return err
	}
	h.addAmbiguous(early)
	h.markMatched(ctx, early)
	return nil
}

// apply records receipts whose part is known. Two receipts of one message are
// recorded one after the other, so that both are reported.
func (h *ReceiptHandler) apply(ctx context.Context, receipts []Receipt) error {
	for len(receipts) > 0 {
		seen := make(map[Ref]bool, len(receipts))
		var distinct, remaining []Receipt
		for _, r := range receipts {
			switch {
			case !r.Matched:
			case seen[r.Part.Ref]:
				remaining = append(remaining, r)
			default:
				seen[r.Part.Ref] = true
				distinct = append(distinct, r)
			}
		}
		if len(distinct) == 0 {
			return nil
		}
		unreported, err := h.deps.Store.Receive(ctx, distinct, h.deps.Now())
		if err != nil {
			return err
		}
		if err := h.SendReports(ctx, unreported); err != nil {
			h.deps.Logger.Warn("cannot create delivery reports; trying again", "count", len(unreported), "error", err)
		}
		receipts = remaining
	}
	return nil
}

// SendReports creates the delivery reports of messages, dispatches them and marks
// the messages as reported. It does not send a report twice.
func (h *ReceiptHandler) SendReports(ctx context.Context, messages []Message) error {
	if len(messages) == 0 {
		return nil
	}
	var reports []outbox.Delivery
	for i := range messages {
		m := &messages[i]
		deliveries, err := m.deliveries(h.deps.Now())
		if err != nil {
			h.deps.Logger.Error("cannot create delivery report", "account", m.Account, "msg_id", m.ID, "error", err)
			continue
		}
		reports = append(reports, deliveries...)
	}
	if len(reports) > 0 {
		if err := h.deps.Deliveries.Send(ctx, reports); err != nil {
			return fmt.Errorf("reports: %w", err)
		}
	}
	return h.deps.Store.MarkReported(ctx, messages)
}

// Run matches ambiguous receipts again, sends reports that a crash left unsent and deletes
// messages whose retention has ended, at intervals until ctx is done.
func (h *ReceiptHandler) Run(ctx context.Context) {
	for {
		h.sweep(ctx)
		if !relay.Sleep(ctx, sweepInterval) {
			return
		}
	}
}

func (h *ReceiptHandler) sweep(ctx context.Context) {
	h.mu.Lock()
	events, ambiguous := h.appliedBefore, h.ambiguous
	h.appliedNow, h.appliedBefore, h.ambiguous = nil, h.appliedNow, nil
	h.mu.Unlock()
	h.markApplied(ctx, events)

	// Match the ambiguous receipts again and apply those that are found.
	if len(ambiguous) > 0 {
		receipts, err := h.Receive(ctx, slices.Clone(ambiguous))
		if err == nil {
			h.markMatched(ctx, receipts)
		} else if h.addAmbiguous(ambiguous); ctx.Err() == nil {
			h.deps.Logger.Warn("cannot match ambiguous receipts; trying again", "error", err)
		}
	}

	// Send the reports of changes that a crash left unreported.
	var err error
	for n := sweepBatch; err == nil && n == sweepBatch; {
		var messages []Message
		messages, err = h.deps.Store.Unreported(ctx, h.deps.Now().Add(-sweepInterval), sweepBatch)
		if n = len(messages); err == nil {
			err = h.SendReports(ctx, messages)
		}
	}
	if err != nil && ctx.Err() == nil {
		h.deps.Logger.Warn("cannot create delivery reports; trying again", "error", err)
	}
	if err := h.deps.Store.Forget(ctx, h.deps.Now()); err != nil && ctx.Err() == nil {
		h.deps.Logger.Warn("cannot delete expired messages", "error", err)
	}
}

func (h *ReceiptHandler) addAmbiguous(receipts []Receipt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range receipts {
		if receipts[i].Ambiguous && len(h.ambiguous) < maxAmbiguous {
			h.ambiguous = append(h.ambiguous, receipts[i])
		}
	}
}

// markMatched marks the events of receipts that are Matched as applied, now and at the sweep
// after the next one.
func (h *ReceiptHandler) markMatched(ctx context.Context, receipts []Receipt) {
	var events []string
	for i := range receipts {
		if receipts[i].Matched && receipts[i].Event != "" {
			events = append(events, receipts[i].Event)
		}
	}
	h.markApplied(ctx, events)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.appliedNow = append(h.appliedNow, events...)
}

func (h *ReceiptHandler) markApplied(ctx context.Context, events []string) {
	if len(events) == 0 || h.deps.Events == nil {
		return
	}
	if err := h.deps.Events.SetApplied(ctx, events); err != nil {
		h.deps.Logger.Warn("cannot clear the unrouted state of applied receipts", "count", len(events), "error", err)
	}
}
