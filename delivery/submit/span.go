package submit

import (
	"time"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/relay/tracing"
)

// span begins the span of a submission; nil if the message has no trace.
func (q *carrierQueue) span(item *item, part int) *tracing.Active {
	m := &item.msg
	if q.worker.deps.Tracer == nil || m.Trace == "" {
		return nil
	}
	span := q.worker.deps.Tracer.Continue(m.Trace, "submit", tracing.Client, time.Now())
	span.Set("penstock.message_id", item.ref(part).String())
	span.Set("penstock.account", m.Account.String())
	span.Set("penstock.carrier", q.route.Name)
	return span
}

// endSpan ends the span of a submission with the carrier's first answer; nil is none.
func endSpan(span *tracing.Active, o *carrier.Outcome) {
	if span == nil {
		return
	}
	span.Set("penstock.carrier_id", o.ID)
	failed := ""
	if o.Verdict != carrier.Accepted {
		failed = o.Reason
	}
	span.End(time.Now(), failed)
}
