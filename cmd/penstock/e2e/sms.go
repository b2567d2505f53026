package e2e

import (
	"net/http"
	"testing"
)

// PostInbound posts an inbound message as JSON and returns its id.
func (c Client) PostInbound(fields map[string]any) string {
	c.Gateway.T.Helper()
	return c.CreateFrom("/inbound/sms/json", fields)
}

// PostInboundText posts an inbound message with an id, as a carrier does.
func (c Client) PostInboundText(id, recipient, text string) string {
	c.Gateway.T.Helper()
	return c.PostInbound(map[string]any{"id": id, "from": "447700900123", "to": recipient, "text": text})
}

// StartWithRelays starts a gateway whose relays deliver to a sink and a mailbox. It returns
// the gateway, the sink and the address of the mailbox.
func StartWithRelays(t *testing.T, s *Site, answer func(http.ResponseWriter, SinkRequest, int), settings ...string) (*Gateway, *Sink, string) {
	t.Helper()
	sink, box := NewSink(t, answer), s.Mailbox()
	return Start(t, s, Fixture(t, "relays.yaml", "SINK", sink.URL, "MAILBOX", box), settings...), sink, box
}
