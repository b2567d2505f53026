package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// sendText posts an inbound message as a carrier does.
func (s *site) sendText(ctx context.Context, n int) {
	text := fmt.Sprintf("message %d & more", n)
	s.ledger.offer(textKind, text)
	body := fmt.Sprintf(`{"id":"single-%d","from":"447700900123","to":"4478000%05d","text":%q}`, n, n%1000, text)
	s.post(ctx, textKind, text, "/inbound/sms/json", body)
}

// sendJoined posts the three parts of an inbound message, in an order that depends on n.
func (s *site) sendJoined(ctx context.Context, n int) {
	var text strings.Builder
	parts := make([]string, 3)
	for p := range parts {
		piece := fmt.Sprintf("(part %d of message %d)", p+1, n)
		text.WriteString(piece)
		parts[p] = fmt.Sprintf(`{"id":"joined-%d-%d","from":"4477010%05d","to":"4478001%05d","udh":"060804%04x03%02x","text":%q}`,
			n, p, n%1000, n%1000, n&0xffff, p+1, piece)
	}
	s.ledger.offer(joinedKind, text.String())
	for p := range parts {
		if a, _ := s.repeat(ctx, joinedKind, http.MethodPost, "/inbound/sms/json", parts[(p+n)%3]); !a.ok() {
			return
		}
	}
	s.ledger.ack(joinedKind, text.String(), "")
}

// sendSMPP queues an inbound message at the SMSC. The gateway acknowledges it with ESME_ROK.
func (s *site) sendSMPP(_ context.Context, n int) {
	text := fmt.Sprintf("over SMPP %d", n)
	s.ledger.offer(smppKind, text)
	s.smsc.deliver(fmt.Sprintf("MO%d", n), "447700900125", fmt.Sprintf("4478002%05d", n%1000), text, func() { s.ledger.ack(smppKind, text, "") })
}

// kindOfText returns the kind of the inbound message with a text.
func kindOfText(text string) string {
	switch {
	case strings.HasPrefix(text, "(part "):
		return joinedKind
	case strings.HasPrefix(text, "over SMPP "):
		return smppKind
	}
	return textKind
}

// noticeKind is the name of the kind of requests to the sink that are not messages.
const noticeKind = "reports and callbacks"

// findArrivals records the messages, reports and callbacks at the sink. An item that arrived with
// several ids was sent in several deliveries, and is unaccounted.
func (s *site) findArrivals(_ context.Context, f findings) error {
	s.sink.arrivedMu.Lock()
	defer s.sink.arrivedMu.Unlock()
	for label, a := range s.sink.arrived {
		kind, id := noticeKind, label
		if text, message := strings.CutPrefix(label, "message "); message {
			kind, id = kindOfText(text), text
		} else {
			s.ledger.ack(noticeKind, label, "")
		}
		f.see(kind, id, a.times, "")
		if len(a.ids) > 1 {
			f.see(kind, fmt.Sprintf("%s (arrived with %d ids)", id, len(a.ids)), 1, "")
		}
	}
	return nil
}
