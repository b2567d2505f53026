package app

import (
	"context"

	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/relay/message"
)

// sender sends the SMS of rules as the accounts' own messages; their service opens
// after the ways out.
type sender struct{ d *Gateway }

func (s sender) Text(text string, maxParts int) message.Body { return s.d.message.Text(text, maxParts) }

func (s sender) Send(ctx context.Context, o message.Order) (message.Sent, error) {
	return s.d.message.Send(ctx, o)
}

// openMessage opens the service for messages of accounts.
func (d *Gateway) openMessage(context.Context) (err error) {
	d.message, err = message.New(message.Deps{
		Store: d.backends.records.Messages, Credit: d.backends.records.Credit, CheckURL: guard.New(d.cfg.Egress.Allow).CheckURL,
		Dispatcher: d.submit, Carriers: d.submit,
	}, message.Options{Lease: d.submit.Lease()})
	return err
}
