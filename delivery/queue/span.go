package queue

import (
	"net/url"
	"strconv"
	"time"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/tracing"
)

// span begins the span of an attempt; nil if the delivery has no trace.
func (q *Queue) span(d *outbox.Delivery) *tracing.Active {
	if q.deps.Tracer == nil || d.Trace == "" {
		return nil
	}
	span := q.deps.Tracer.Continue(d.Trace, "deliver "+string(d.Kind), tracing.Client, time.Now())
	span.Set("penstock.delivery_id", d.ID)
	span.Set("penstock.message_id", d.MessageID)
	span.Set("penstock.account", d.Account.String())
	span.Set("penstock.relay", d.Relay)
	span.Set("penstock.attempt", strconv.Itoa(d.Tries+1))
	if d.Request != nil {
		if u, err := url.Parse(d.Request.URL); err == nil {
			span.Set("server.address", u.Hostname())
		}
	}
	return span
}

// endSpan ends the span of an attempt; nil is none.
func endSpan(span *tracing.Active, o *outbox.Outcome) {
	if span == nil {
		return
	}
	span.Set("penstock.state", string(o.State))
	if o.Attempt.Status > 0 {
		span.Set("http.response.status_code", strconv.Itoa(o.Attempt.Status))
	}
	failed := ""
	if o.State != outbox.Delivered && o.State != outbox.Simulated {
		failed = o.Reason
	}
	span.End(time.Now(), failed)
}
