package inbound

import (
	"context"
	"fmt"
)

// MessageTrace is the path of one message through the gateway, as far as it is stored.
type MessageTrace struct {
	// DuplicateOf is the id of the message that the carrier delivered before under
	// the same id.
	DuplicateOf string
	// Part is set for a part of a concatenated message.
	Part *Part
	// MessageID is the id of the reassembled message that the part belongs to, ""
	// while parts are missing. For a message of one part it is the message's own.
	MessageID string
	// Decision is the routing decision under the current relays; zero for a
	// duplicate or a part.
	Decision Decision
}

// TraceMessage traces a message that was received. It changes nothing.
func (s *Service) TraceMessage(ctx context.Context, m Message) (MessageTrace, error) {
	if m.CarrierID != "" {
		holder, err := s.deps.Claims.Holder(ctx, claimKey(&m))
		if err != nil {
			return MessageTrace{}, fmt.Errorf("inbound: carrier ids: %w", err)
		}
		if holder != "" && holder != m.ID {
			return MessageTrace{DuplicateOf: holder}, nil
		}
	}
	if p, ok := PartOf(&m); ok {
		messageID, err := s.deps.Parts.MessageOf(ctx, groupKey(&m, p), m.ID)
		if err != nil {
			return MessageTrace{}, fmt.Errorf("inbound: parts: %w", err)
		}
		return MessageTrace{Part: &p, MessageID: messageID}, nil
	}
	routes, err := s.routeCache.routes(ctx, []string{m.To})
	if err != nil {
		return MessageTrace{}, fmt.Errorf("inbound: relays: %w", err)
	}
	return MessageTrace{MessageID: m.ID, Decision: Decide(&m, routes[m.To], s.o.Settings)}, nil
}
