package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// sendText hands over an inbound message, as a carrier does over HTTP.
func (s *site) sendText(ctx context.Context, n int) {
	text := fmt.Sprintf("message %d & more", n)
	s.ledger.offer(ofTexts, text)
	body := fmt.Sprintf(`{"id":"single-%d","from":"447700900123","to":"4478000%05d","text":%q}`, n, n%1000, text)
	s.post(ctx, ofTexts, text, "/inbound/sms/json", body)
}

// sendJoined hands over the three parts of a message, in an order that changes.
func (s *site) sendJoined(ctx context.Context, n int) {
	var text strings.Builder
	parts := make([]string, 3)
	for p := range parts {
		piece := fmt.Sprintf("(part %d of message %d)", p+1, n)
		text.WriteString(piece)
		parts[p] = fmt.Sprintf(`{"id":"joined-%d-%d","from":"4477010%05d","to":"4478001%05d","udh":"060804%04x03%02x","text":%q}`,
			n, p, n%1000, n%1000, n&0xffff, p+1, piece)
	}
	s.ledger.offer(ofJoined, text.String())
	for p := range parts {
		if a, _ := s.repeat(ctx, ofJoined, http.MethodPost, "/inbound/sms/json", parts[(p+n)%3]); !a.done() {
			return
		}
	}
	s.ledger.ack(ofJoined, text.String(), "")
}

// sendSMPP has the SMSC deliver a message; what the gateway answers with ESME_ROK
// is acknowledged.
func (s *site) sendSMPP(_ context.Context, n int) {
	text := fmt.Sprintf("over SMPP %d", n)
	s.ledger.offer(ofSMPP, text)
	s.smsc.deliver(fmt.Sprintf("MO%d", n), "447700900125", fmt.Sprintf("4478002%05d", n%1000), text, func() { s.ledger.ack(ofSMPP, text, "") })
}

// textKind is the kind of a text at the sink.
func textKind(text string) string {
	switch {
	case strings.HasPrefix(text, "(part "):
		return ofJoined
	case strings.HasPrefix(text, "over SMPP "):
		return ofSMPP
	}
	return ofTexts
}

// ofTold is the kind of what the endpoint is told beside messages.
const ofTold = "reports and callbacks"

// findArrivals looks at what came to the sink. What came with two ids was sent as
// two messages, reports or callbacks.
func (s *site) findArrivals(_ context.Context, f findings) error {
	s.sink.seenMu.Lock()
	defer s.sink.seenMu.Unlock()
	for label, a := range s.sink.seen {
		kind, id := ofTold, label
		if text, message := strings.CutPrefix(label, "message "); message {
			kind, id = textKind(text), text
		} else {
			s.ledger.ack(ofTold, label, "")
		}
		f.see(kind, id, a.times, "")
		if len(a.ids) > 1 {
			f.see(kind, fmt.Sprintf("%s (came with %d ids)", id, len(a.ids)), 1, "")
		}
	}
	return nil
}
