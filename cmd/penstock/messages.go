package main

import (
	"context"

	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/relay/message"
)

// openMessages makes what takes the messages that accounts send.
func (d *daemon) openMessages(context.Context) (err error) {
	d.sends, err = message.New(message.Deps{
		Store: d.back.records.Messages, Credit: d.back.records.Credit, CheckURL: guard.New(d.cfg.Egress.Allow).CheckURL,
		Dispatcher: d.sending,
	}, message.Options{Lease: d.sending.Lease()})
	return err
}
