package carrier

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
)

// Receipts keeps the delivery receipts that carriers hand over: each is unrouted
// under what it says, since no message was sent that it could be about. It is
// an intake.Processor.
type Receipts struct{}

// Process reads each receipt.
func (Receipts) Process(_ context.Context, items []intake.Item) ([]event.Mark, error) {
	marks := make([]event.Mark, 0, len(items))
	for i := range items {
		r, err := smppReceipt(&items[i].Entry)
		if err != nil {
			marks = append(marks, mark(&items[i], event.Quarantined, why(err)))
			continue
		}
		_, carrier, _ := strings.Cut(items[i].Entry.Path, receiptPath)
		reason := fmt.Sprintf("%s for the message %q of %s, which was not sent from here", cmp.Or(r.State, "a receipt without a state"), r.ID, carrier)
		marks = append(marks, mark(&items[i], event.Unrouted, intake.Reason(reason)))
	}
	return marks, nil
}

func smppReceipt(e *intake.Entry) (smpp.Receipt, error) {
	if e.Source != SMPP {
		return smpp.Receipt{}, relay.Errorf(relay.KindInvalid, "no adapter for the receipts of %q", e.Source)
	}
	d, err := smpp.ParseDelivery(e.Body)
	if err != nil {
		return smpp.Receipt{}, err
	}
	return d.Receipt(), nil
}
