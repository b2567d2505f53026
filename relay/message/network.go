package message

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// NetworkDeps are what Network stands on. All but Logger and Now are needed.
type NetworkDeps struct {
	Receipts   Receipts
	Reports    Reports
	Deliveries outbox.Store
	Dispatcher outbox.Dispatcher
	Logger     *slog.Logger     // nil means slog.Default
	Now        func() time.Time // nil means time.Now
}

// NetworkOptions tune a Network; the zero value works.
type NetworkOptions struct {
	// Lease is how long a new delivery is leased for its first attempt; 0 means a
	// minute.
	Lease time.Duration
	// SweepEvery is how often is looked for reports that a crash left untold; 0
	// means 10 s.
	SweepEvery time.Duration
}

// Network takes what networks report about messages, and tells accounts what
// became of them.
type Network struct {
	deps NetworkDeps
	o    NetworkOptions
}

// NewNetwork makes a Network. Run tells what was left untold.
func NewNetwork(deps NetworkDeps, o NetworkOptions) (*Network, error) {
	if deps.Receipts == nil || deps.Reports == nil || deps.Deliveries == nil || deps.Dispatcher == nil {
		return nil, errors.New("messages: receipts, reports, deliveries and dispatcher are needed")
	}
	deps.Logger = cmp.Or(deps.Logger, slog.Default())
	if deps.Now == nil {
		deps.Now = time.Now
	}
	o.Lease, o.SweepEvery = cmp.Or(o.Lease, time.Minute), cmp.Or(o.SweepEvery, 10*time.Second)
	return &Network{deps: deps, o: o}, nil
}

// Receive records receipts, in order, and has the accounts told. Those that name
// their Part need no match. It returns them with Found set; one that is not
// Found waits for the carrier's answer that it was faster than.
func (n *Network) Receive(ctx context.Context, receipts []Receipt) ([]Receipt, error) {
	var unnamed []Receipt
	var at []int
	for i := range receipts {
		if receipts[i].Part.ID != 0 {
			receipts[i].Found = true
			continue
		}
		unnamed, at = append(unnamed, receipts[i]), append(at, i)
	}
	if len(unnamed) > 0 {
		matched, err := n.deps.Receipts.Match(ctx, unnamed)
		if err != nil {
			return nil, err
		}
		for k, i := range at {
			receipts[i] = matched[k]
		}
	}
	return receipts, n.apply(ctx, receipts)
}

// Bind keeps which parts ids name, and records the receipts that came before.
func (n *Network) Bind(ctx context.Context, bindings []Binding) error {
	early, err := n.deps.Receipts.Bind(ctx, bindings)
	if err != nil {
		return err
	}
	return n.apply(ctx, early)
}

// apply records receipts whose part is known. Two of one message are recorded
// one after the other, so that each is told.
func (n *Network) apply(ctx context.Context, receipts []Receipt) error {
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
		told, err := n.deps.Receipts.Receive(ctx, now, n.deps.Now())
		if err != nil {
			return err
		}
		if err := n.Tell(ctx, told); err != nil {
			n.deps.Logger.Warn("reports are told later", "count", len(told), "error", err)
		}
		receipts = next
	}
	return nil
}

// Tell makes the deliveries that report what became of messages, has them sent,
// and notes that they were told. A report that was made before is left as it is.
func (n *Network) Tell(ctx context.Context, ms []Message) error {
	var all []outbox.Delivery
	for i := range ms {
		ds, err := n.reports(&ms[i])
		if err != nil {
			n.deps.Logger.Error("a report cannot be made", "account", ms[i].Account, "msg_id", ms[i].ID, "error", err)
			continue
		}
		all = append(all, ds...)
	}
	if len(ms) == 0 {
		return nil
	}
	if len(all) > 0 {
		known, err := n.deps.Deliveries.Create(ctx, all, n.deps.Now().Add(n.o.Lease))
		if err != nil {
			return fmt.Errorf("reports: %w", err)
		}
		n.deps.Dispatcher.Dispatch(without(all, known))
	}
	return n.deps.Reports.Told(ctx, ms)
}

// without returns the deliveries but those at some places.
func without(ds []outbox.Delivery, places []int) []outbox.Delivery {
	drop := make(map[int]bool, len(places))
	for _, i := range places {
		drop[i] = true
	}
	kept := make([]outbox.Delivery, 0, len(ds))
	for i := range ds {
		if !drop[i] {
			kept = append(kept, ds[i])
		}
	}
	return kept
}

// Run tells what a crash left untold, and forgets messages that were kept for long
// enough, until ctx is done.
func (n *Network) Run(ctx context.Context) {
	tick := time.NewTicker(n.o.SweepEvery)
	defer tick.Stop()
	for {
		if err := n.sweep(ctx); err != nil && ctx.Err() == nil {
			n.deps.Logger.Warn("reports are told later", "error", err)
		}
		if err := n.deps.Reports.Forget(ctx, n.deps.Now()); err != nil && ctx.Err() == nil {
			n.deps.Logger.Warn("messages are kept for longer", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// untold is how many messages a sweep takes at a time.
const untold = 500

func (n *Network) sweep(ctx context.Context) error {
	for {
		ms, err := n.deps.Reports.Untold(ctx, n.deps.Now().Add(-n.o.SweepEvery), untold)
		if err != nil || len(ms) == 0 {
			return err
		}
		if err := n.Tell(ctx, ms); err != nil || len(ms) < untold {
			return err
		}
	}
}
