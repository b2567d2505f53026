package submit

import (
	"context"
	"time"

	"github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/relay/message"
)

// maxBatch is the largest number of outcomes saved at a time.
const maxBatch = 512

// pendingOutcome is an outcome that is not saved yet. A correction replaces an
// unknown outcome; it does not keep its item in memory.
type pendingOutcome struct {
	item       *item
	outcome    message.Outcome
	correction bool
}

// saveOutcomes binds the carriers' ids before it records the outcomes, so that a
// receipt always finds its part.
func (w *Worker) saveOutcomes(ctx context.Context, batch []pendingOutcome) (none struct{}, err error) {
	outcomes := make([]message.Outcome, len(batch))
	var bindings []message.Binding
	for i := range batch {
		outcomes[i] = batch[i].outcome
		bindings = append(bindings, w.bindingsOf(batch[i].item, &batch[i].outcome)...)
	}
	if len(bindings) > 0 {
		if err := w.deps.Reporter.Bind(ctx, bindings); err != nil {
			return none, err
		}
	}
	toReport, err := w.deps.Work.Settle(ctx, outcomes)
	if err != nil {
		return none, err
	}
	if err := w.deps.Reporter.SendReports(ctx, toReport); err != nil {
		w.log.Warn("cannot create delivery reports; trying again", "count", len(toReport), "error", err)
	}
	return none, nil
}

// bindingsOf returns the binding of the id that receipts name the part by: the
// carrier's id, or our reference if the carrier's answer was lost.
func (w *Worker) bindingsOf(item *item, o *message.Outcome) []message.Binding {
	q := w.queueNamed(o.Carrier)
	if q == nil || !q.route.ReceiptsByCarrierID {
		return nil
	}
	var id string
	switch {
	case o.State == message.Unknown:
		id = smpp.UnansweredID(smpp.ReferenceOf(o.PartRef.String()), item.msg.Destination)
	case o.CarrierID != "":
		id = smpp.CanonicalID(o.CarrierID)
	default:
		return nil
	}
	return []message.Binding{{Carrier: o.Carrier, IDs: []string{id}, Part: o.PartRef, Number: item.msg.Destination}}
}

func (w *Worker) queueNamed(carrier string) *carrierQueue {
	for _, q := range w.queues {
		if q.route.Name == carrier {
			return q
		}
	}
	return nil
}

func (w *Worker) outcomesSaved(batch []pendingOutcome, _ struct{}) {
	for i := range batch {
		if !batch[i].correction {
			w.partsDone(batch[i].item, 1)
		}
	}
}

// outcomeRefused drops an outcome that the store refuses: the part stays marked as
// being sent, as after a crash.
func (w *Worker) outcomeRefused(o *pendingOutcome, err error) time.Duration {
	w.log.Error("outcome refused by the store", "account", o.outcome.Account, "msg_id", o.outcome.ID, "outcome", o.outcome.State, "error", err)
	return 0
}
