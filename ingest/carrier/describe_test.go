package carrier

import (
	"testing"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/intake/intaketest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAPostIsDescribedWithoutItsText(t *testing.T) {
	p := NewProcessor(nil)
	p.Add(SMPP, NewSMPP(nil))
	for _, tc := range []struct {
		name  string
		entry intake.Entry
		want  string
	}{
		{"a message", intake.Entry{Source: "json", Path: "/inbound/sms/json", ContentType: "application/json", Body: []byte(`{"id":"1","from":"447700900123","to":"4490","text":"secret"}`)}, "from 447700900123 to 4490"},
		{"a part", intake.Entry{Source: "json", Path: "/inbound/sms/json", ContentType: "application/json", Body: []byte(`{"id":"1","from":"447700900123","to":"4490","data":"68","udh":"050003cc0201","coding":8}`)}, "part 1 of 2, delivered with the others, from 447700900123 to 4490"},
		{"an invalid body", intake.Entry{Source: "json", Path: "/inbound/sms/json", ContentType: "application/json", Body: []byte(`{`)}, ""},
		{"a message from an SMSC", SMPPEntry(event.SMS, "one", "2-receiver", "s-1", deliver{from: "447700900123", text: "secret"}.pdu(t)), "from 447700900123 to 447800000001 over bind 2-receiver of carrier one"},
		{"a carrier without an adapter", intake.Entry{Source: "gone"}, ""},
	} {
		if got := intaketest.Describe(p, &tc.entry); got != tc.want {
			t.Errorf("%s: description = %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestAReceiptIsDescribedByItsMessage(t *testing.T) {
	p := NewReceiptProcessor(nil)
	for _, tc := range []struct {
		name  string
		entry intake.Entry
		want  string
	}{
		{"a receipt from an SMSC", SMPPEntry(event.Receipt, "one", "1-transceiver", "s-1", deliver{from: "1", class: 4, text: "id:1470 stat:DELIVRD"}.pdu(t)), `delivered: message "1470 or 5be or 5232" of carrier one over bind 1-transceiver`},
		{"a receipt from a JSON carrier", intake.Entry{Source: "json", Path: "/inbound/dlr/json/partner", ContentType: "application/json", Body: []byte(`{"ref":"1-77-0","state":"UNDELIV"}`)}, `undelivered: message "1-77-0" of carrier partner`},
		{"an invalid body", intake.Entry{Source: "json", Path: "/inbound/dlr/json", ContentType: "application/json", Body: []byte(`{`)}, ""},
	} {
		relaytest.Equal(t, tc.name, intaketest.Describe(p, &tc.entry), tc.want)
	}
}
