package inbound

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay/event"
)

// dueBatch is the number of groups that RouteDue routes.
const dueBatch = 200

// Run routes messages whose wait for missing parts has ended and groups whose
// lease expired, until ctx is done.
func (s *Service) Run(ctx context.Context) {
	ticker := time.NewTicker(s.o.SweepEvery)
	defer ticker.Stop()
	failing := false
	for {
		err := s.routeAllDue(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			s.o.Logger.Warn("incomplete messages were not forwarded; trying again", "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (s *Service) routeAllDue(ctx context.Context) error {
	for {
		if n, err := s.RouteDue(ctx); err != nil || n < dueBatch {
			return err
		}
	}
}

// RouteDue routes the groups that are due, at most 200, and returns their number.
// After an error they are due again when their lease expires.
func (s *Service) RouteDue(ctx context.Context) (int, error) {
	found, err := s.deps.Store.Due(ctx, s.times(), dueBatch)
	if err != nil {
		return 0, err
	}
	var due []ReassembledMessage
	for _, g := range found {
		if g.Repeats == "" {
			due = append(due, g)
		} else {
			s.keepDropped(g)
		}
	}
	if len(due) == 0 {
		return len(found), s.noteDropped(ctx)
	}
	targets := make([]string, len(due))
	for i := range due {
		targets[i] = due[i].Parts[0].To
	}
	routes, err := s.routeCache.routes(ctx, targets)
	if err != nil {
		return 0, fmt.Errorf("inbound: relays: %w", err)
	}
	p := plan{results: make([]Result, len(due))}
	for i, g := range due {
		g.Event = g.ID
		s.planReassembled(&p, i, g, routes[targets[i]])
	}
	if err := s.perform(ctx, &p); err != nil {
		return 0, err
	}
	if err := s.note(ctx, due, p.results); err != nil {
		return 0, err
	}
	return len(found), errors.Join(s.end(ctx, &p), s.noteDropped(ctx))
}

// note sets the status of events whose messages no relay takes, or lack parts.
func (s *Service) note(ctx context.Context, due []ReassembledMessage, results []Result) error {
	for i, r := range results {
		if r.State == event.Done && r.Outcome == "" && len(r.Notes) == 0 || s.deps.LateStatuses == nil {
			continue
		}
		if err := s.deps.LateStatuses.Put(ctx, &due[i].Parts[0], r); err != nil {
			return fmt.Errorf("inbound: event status: %w", err)
		}
	}
	return nil
}
