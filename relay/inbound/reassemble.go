package inbound

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
)

// Times are the clock and the time limits of a store of parts.
type Times struct {
	Now time.Time
	// Wait is the time for which a message waits for missing parts after its first part. A
	// repeated part is recognised for twice as long.
	Wait time.Duration
	// Lease is the time that a caller has for routing a message.
	Lease time.Duration
}

// PartArrival is a part that was received.
type PartArrival struct {
	Group  string // the same for all parts of a message
	Digest string // the same for a part that is received twice
	Number int
	Total  int
	// Message is the part; its ID identifies the arrival.
	Message Message
}

// PartState is the result of adding a part.
type PartState string

// The results of adding a part.
const (
	Waiting    PartState = "waiting"   // for other parts
	Repeated   PartState = "duplicate" // of the part AddResult.MessageID
	Completed  PartState = "complete"  // the caller routes the message and calls End
	RouteAgain PartState = "again"     // the message was routed before; the caller routes it again
)

// AddResult is the result of adding a part.
type AddResult struct {
	State PartState
	// MessageID is the id of the reassembled message; for Repeated the id of the part's first
	// arrival, and empty for Waiting.
	MessageID string
	Group     ReassembledMessage
	// Dropped has the waiting parts that were dropped, because they repeat a message and
	// another message with their reference has begun.
	Dropped ReassembledMessage
}

// ReassembledMessage has the parts of a concatenated message: all, or those that arrived in
// time.
type ReassembledMessage struct {
	Group string
	ID    string // the id of the first part that is present
	// Event is the id of the part whose event gets the status of the message if no relay
	// matches.
	Event string
	Parts []Message
	// Repeats is the id of the last message if all parts repeat parts of it. Such parts are
	// not routed and have no ID.
	Repeats string
}

// LateStatuses changes the status of an event after its journal record was processed, on whichever
// gateway received the event.
type LateStatuses interface {
	// Put sets the status of a message's event: unrouted, quarantined, or done with
	// an outcome or notes.
	Put(ctx context.Context, m *Message, r Result) error
}

// endedGroup is a reassembled message that a plan routes, with the index of its result.
type endedGroup struct {
	group  ReassembledMessage
	result int
	routed bool // the message was routed before this plan
}

// addParts adds the parts among new messages to their groups and returns their results by the
// index of the message.
func (s *Service) addParts(ctx context.Context, msgs []Message, firstIDs []string) (map[int]AddResult, error) {
	var arrivals []PartArrival
	var index []int
	for i := range msgs {
		if p, ok := PartOf(&msgs[i]); ok && firstIDs[i] == msgs[i].ID {
			arrivals = append(arrivals, PartArrival{
				Group: groupKey(&msgs[i], p), Digest: digest(&msgs[i]), Number: p.Number, Total: p.Total, Message: msgs[i],
			})
			index = append(index, i)
		}
	}
	if len(arrivals) == 0 {
		return nil, nil
	}
	added, err := s.deps.Store.Add(ctx, arrivals, s.times())
	if err != nil {
		return nil, fmt.Errorf("inbound: parts: %w", err)
	}
	byIndex := make(map[int]AddResult, len(added))
	for n, i := range index {
		byIndex[i] = added[n]
		s.keepDropped(added[n].Dropped)
	}
	_ = s.noteDropped(ctx) // RouteDue tries again
	return byIndex, nil
}

// maxDropped bounds the dropped parts in memory while statuses cannot be saved.
const maxDropped = 1000

// keepDropped keeps dropped parts until noteDropped has set their statuses: Store returns them
// only once.
func (s *Service) keepDropped(g ReassembledMessage) {
	if len(g.Parts) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped = append(s.dropped, g)
	s.dropped = s.dropped[max(0, len(s.dropped)-maxDropped):]
}

// noteDropped sets the statuses of the events of dropped parts. After an error it keeps them.
func (s *Service) noteDropped(ctx context.Context) error {
	s.mu.Lock()
	groups := s.dropped
	s.dropped = nil
	s.mu.Unlock()
	for i, g := range groups {
		for n := range g.Parts {
			m := &g.Parts[n]
			r := Result{MessageID: m.ID, Account: m.Account, State: event.Done, Outcome: "duplicate of " + g.Repeats}
			if err := s.setStatus(ctx, m, r); err != nil {
				for _, g := range groups[i:] {
					s.keepDropped(g)
				}
				return err
			}
		}
	}
	return nil
}

func (s *Service) setStatus(ctx context.Context, m *Message, r Result) error {
	if s.deps.LateStatuses == nil {
		return nil
	}
	if err := s.deps.LateStatuses.Put(ctx, m, r); err != nil {
		return fmt.Errorf("inbound: event status: %w", err)
	}
	return nil
}

func (s *Service) times() Times {
	return Times{Now: s.o.Now(), Wait: s.o.JoinWait, Lease: s.o.Lease}
}

// planReassembled adds a reassembled message to a plan. routed means that the message was routed
// before.
func (s *Service) planReassembled(p *plan, i int, g ReassembledMessage, relays []*CompiledRelay, routed bool) {
	m, missing := s.assembler.assemble(g.Parts)
	m.ID = g.ID
	p.add(i, &m, Decide(&m, relays, s.o.Settings))
	if len(missing) > 0 {
		p.results[i].Outcome = fmt.Sprintf("joined of %d parts, without %s", len(g.Parts), strings.Trim(fmt.Sprint(missing), "[]"))
	}
	p.endedGroups = append(p.endedGroups, endedGroup{group: g, result: i, routed: routed})
}

// end removes the reassembled messages that have been routed. It parks messages that were not
// relayed, for a replay.
func (s *Service) end(ctx context.Context, p *plan) error {
	var done []ReassembledMessage
	for _, e := range p.endedGroups {
		var err error
		relayed := p.results[e.result].State == event.Done
		switch {
		case !relayed:
			err = s.deps.Store.Park(ctx, e.group, s.o.Retention)
		case e.routed:
			err = s.deps.Store.Unpark(ctx, e.group)
		}
		if err != nil {
			return fmt.Errorf("inbound: parts: %w", err)
		}
		if !e.routed {
			done = append(done, e.group)
		}
	}
	if len(done) == 0 {
		return nil
	}
	if err := s.deps.Store.End(ctx, done); err != nil {
		return fmt.Errorf("inbound: parts: %w", err)
	}
	return nil
}

const (
	dueBatch    = 200 // the largest number of messages that RouteDue routes
	runInterval = 5 * time.Second
)

// Run routes messages whose wait for missing parts has ended and messages whose lease expired,
// until ctx is done. Complete messages do not wait for Run.
func (s *Service) Run(ctx context.Context) {
	failing := false
	for {
		n, err := s.RouteDue(ctx)
		for err == nil && n == dueBatch {
			n, err = s.RouteDue(ctx)
		}
		if err != nil && !failing && ctx.Err() == nil {
			s.o.Logger.Warn("incomplete messages were not forwarded; trying again", "error", err)
		}
		failing = err != nil
		if !relay.Sleep(ctx, runInterval) {
			return
		}
	}
}

// RouteDue routes the messages that are due and notes dropped parts, at most dueBatch messages in
// all, and returns their number. After an error the messages are due again when their lease expires.
func (s *Service) RouteDue(ctx context.Context) (int, error) {
	groups, err := s.deps.Store.Due(ctx, s.times(), dueBatch)
	if err != nil {
		return 0, err
	}
	var due []ReassembledMessage
	for _, g := range groups {
		if g.Repeats == "" {
			due = append(due, g)
		} else {
			s.keepDropped(g)
		}
	}
	if len(due) == 0 {
		return len(groups), s.noteDropped(ctx)
	}
	targets := make([]string, len(due))
	for i := range due {
		targets[i] = due[i].Parts[0].To
	}
	relays, err := s.relayCache.relays(ctx, targets)
	if err != nil {
		return 0, fmt.Errorf("inbound: relays: %w", err)
	}
	p := plan{results: make([]Result, len(due))}
	for i, g := range due {
		g.Event = g.ID
		s.planReassembled(&p, i, g, relays[targets[i]], false)
	}
	if err := s.perform(ctx, &p); err != nil {
		return 0, err
	}
	for i, r := range p.results {
		if r.State == event.Done && r.Outcome == "" && len(r.Notes) == 0 {
			continue // the complete message was relayed
		}
		if err := s.setStatus(ctx, &due[i].Parts[0], r); err != nil {
			return 0, err
		}
	}
	return len(groups), errors.Join(s.end(ctx, &p), s.noteDropped(ctx))
}
