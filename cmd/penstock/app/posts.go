package app

import (
	"context"

	"github.com/penstock/penstock/ingest/carrier"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
)

// posts finds events in the journals of this gateway. Messages are read from
// them as the processor reads them.
type posts struct {
	intakes  map[event.Kind]*intake.Intake
	messages *carrier.Processor
	frames   func(ctx context.Context, acct relay.AccountID, it *intake.Item) ([]inbound.Step, []inbound.FrameTrace, error)
}

// Post returns an event and the body of its post.
func (p posts) Post(ctx context.Context, id string) (inbound.Post, error) {
	for _, kind := range event.Kinds() {
		e, it, err := p.intakes[kind].Event(ctx, id)
		if relay.KindOf(err) == relay.KindNotFound {
			continue
		}
		return inbound.Post{
			Event: e, By: it.Entry.Account,
			Messages: func() ([]inbound.Message, string, error) { return p.messages.Messages(&it) },
			Frames: func(ctx context.Context) ([]inbound.Step, []inbound.FrameTrace, error) {
				return p.frames(ctx, it.Entry.Account, &it)
			},
		}, err
	}
	return inbound.Post{}, relay.Errorf(relay.KindNotFound, "event %s", id)
}
