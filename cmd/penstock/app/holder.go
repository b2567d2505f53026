package app

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/delivery/carrier/smpp"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/gateway"
)

// holdPeriod is the time after which another gateway may take the binds of a carrier from
// one that has not renewed its hold.
const holdPeriod = 15 * time.Second

// holder runs the binds of a carrier whose SMSC allows one connection: one gateway holds them
// at a time, and another takes over when it stops, or has not renewed for holdPeriod. While
// the holder cannot reach the database it keeps its binds: it cannot determine whether
// another gateway can, and the SMSC refuses a second connection.
type holder struct {
	carrier string
	node    string // of this gateway
	store   *gateway.Store
	clients []*smpp.Client
	resume  func() // wakes the carrier's queue
	log     *slog.Logger
	current atomic.Pointer[string] // the gateway that holds them; nil if that is unknown
}

// isOther reports whether another gateway may hold the binds. node is its name, empty until
// the database has answered.
func (h *holder) isOther() (node string, ok bool) {
	current := h.current.Load()
	if current == nil {
		return "", true
	}
	return *current, *current != h.node
}

// run holds the binds whenever no other gateway does, until ctx ends.
func (h *holder) run(ctx context.Context) {
	var binds sync.WaitGroup
	var unbind context.CancelFunc // nil while this gateway does not hold them
	for {
		node, err := h.hold(ctx)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				h.log.WarnContext(ctx, "cannot determine which gateway holds the binds", "carrier", h.carrier, "error", err)
			}
		case node == h.node && unbind == nil:
			var life context.Context
			life, unbind = context.WithCancel(ctx)
			for _, client := range h.clients {
				binds.Go(func() { client.Run(life) })
			}
			h.log.InfoContext(ctx, "this gateway holds the binds", "carrier", h.carrier)
		case node != h.node && unbind != nil:
			unbind()
			binds.Wait()
			unbind = nil
			h.log.WarnContext(ctx, "another gateway holds the binds", "carrier", h.carrier, "node", node)
		}
		if err == nil {
			h.current.Store(&node)
			h.resume()
		}
		pause := holdPeriod / 3
		if err != nil { // so that one slow answer does not lose the hold
			pause = time.Second
		}
		if !relay.Sleep(ctx, pause) {
			break
		}
	}
	binds.Wait()
	if unbind == nil {
		return
	}
	unbind()
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := h.store.ReleaseCarrier(release, h.carrier, h.node); err != nil {
		h.log.WarnContext(ctx, "binds not released: another gateway takes over later", "carrier", h.carrier, "error", err)
	}
}

func (h *holder) hold(ctx context.Context) (node string, err error) {
	ctx, cancel := context.WithTimeout(ctx, holdPeriod/5)
	defer cancel()
	return h.store.HoldCarrier(ctx, h.carrier, h.node, holdPeriod)
}
