package inbound

import (
	"context"
	"fmt"
)

// Fate is what became of a message, as far as it is remembered.
type Fate struct {
	// DuplicateOf is the message that the carrier had handed over before.
	DuplicateOf string
	// Part is set for a part of a message; Whole is the id of the message it has
	// become, "" while it waits. For a whole message Whole is its own.
	Part  *Part
	Whole string
	// Decision is what the message meets as the relays are now; zero for a
	// duplicate or a part.
	Decision Decision
}

// Follow says what became of a message that was received. It changes nothing.
func (s *Service) Follow(ctx context.Context, m Message) (Fate, error) {
	if m.CarrierID != "" {
		holder, err := s.deps.Claims.Holder(ctx, claimKey(&m))
		if err != nil {
			return Fate{}, fmt.Errorf("inbound: carrier ids: %w", err)
		}
		if holder != "" && holder != m.ID {
			return Fate{DuplicateOf: holder}, nil
		}
	}
	if p, ok := PartOf(&m); ok {
		whole, err := s.deps.Parts.Whole(ctx, groupKey(&m, p), m.ID)
		if err != nil {
			return Fate{}, fmt.Errorf("inbound: parts: %w", err)
		}
		return Fate{Part: &p, Whole: whole}, nil
	}
	routes, err := s.known.routes(ctx, []string{m.To})
	if err != nil {
		return Fate{}, fmt.Errorf("inbound: relays: %w", err)
	}
	return Fate{Whole: m.ID, Decision: Decide(&m, routes[m.To], s.o.Settings)}, nil
}
