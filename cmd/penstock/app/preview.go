package app

import (
	"cmp"
	"context"

	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/delivery/worker"
	"github.com/penstock/penstock/relay/outbox"
)

// previewer shows requests as the ways out would make them: signed, with every header, and
// whether the address in the URL would be refused. What a name resolves to is not looked up:
// nothing leaves the gateway.
func previewer(send *worker.Worker, http *httpout.Client, g *guard.Guard) outbox.Previewer {
	return func(ctx context.Context, d outbox.Delivery) (outbox.Request, string, error) {
		signed, err := send.Preview(ctx, d)
		if err != nil {
			return outbox.Request{}, "", err
		}
		req, unsendable := http.Preview(ctx, signed)
		return req, errorText(cmp.Or(unsendable, g.CheckURL(signed.URL))), nil
	}
}

// errorText returns the text of an error, "" for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
