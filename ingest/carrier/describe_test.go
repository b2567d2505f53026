package carrier

import (
	"testing"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/intake/intaketest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAPostIsDescribedByItsNumbersAndNotItsText(t *testing.T) {
	p := NewProcessor(nil)
	p.Add(SMPP, NewSMPP(nil))
	for _, tc := range []struct {
		name  string
		entry intake.Entry
		want  string
	}{
		{"a message", intake.Entry{Source: "json", Path: "/inbound/sms/json", ContentType: "application/json", Body: []byte(`{"id":"1","from":"447700900123","to":"4490","text":"secret"}`)}, "from 447700900123 to 4490"},
		{"a part", intake.Entry{Source: "json", Path: "/inbound/sms/json", ContentType: "application/json", Body: []byte(`{"id":"1","from":"447700900123","to":"4490","data":"68","udh":"050003cc0201","coding":8}`)}, "part 1 of 2, delivered with the others, from 447700900123 to 4490"},
		{"one that cannot be read", intake.Entry{Source: "json", Path: "/inbound/sms/json", ContentType: "application/json", Body: []byte(`{`)}, ""},
		{"one of an SMSC", SMPPEntry(event.SMS, "one", "2-receiver", "s-1", deliver{from: "447700900123", text: "secret"}.pdu(t)), "from 447700900123 to 447800000001 over bind 2-receiver of carrier one"},
		{"one of a carrier that is gone", intake.Entry{Source: "gone"}, ""},
	} {
		if got := intaketest.Describe(p, &tc.entry); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
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
		{"of an SMSC", SMPPEntry(event.Receipt, "one", "1-transceiver", "s-1", deliver{from: "1", class: 4, text: "id:1470 stat:DELIVRD"}.pdu(t)), `delivered: message "1470 or 5be or 5232" of carrier one over bind 1-transceiver`},
		{"of a JSON carrier", intake.Entry{Source: "json", Path: "/inbound/dlr/json/partner", ContentType: "application/json", Body: []byte(`{"ref":"1-77-0","state":"UNDELIV"}`)}, `undelivered: message "1-77-0" of carrier partner`},
		{"one that cannot be read", intake.Entry{Source: "json", Path: "/inbound/dlr/json", ContentType: "application/json", Body: []byte(`{`)}, ""},
	} {
		relaytest.Equal(t, tc.name, intaketest.Describe(p, &tc.entry), tc.want)
	}
}
