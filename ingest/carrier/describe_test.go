package carrier

import (
	"testing"

	"github.com/penstock/penstock/ingest/intake"
)

func TestAPostIsDescribedByItsNumbersAndNotItsText(t *testing.T) {
	p := NewProcessor(nil)
	for _, tc := range []struct {
		name  string
		entry intake.Entry
		want  string
	}{
		{"a message", intake.Entry{Source: "json", Path: "/inbound/sms/json", ContentType: "application/json", Body: []byte(`{"id":"1","from":"447700900123","to":"4490","text":"secret"}`)}, "from 447700900123 to 4490"},
		{"one that cannot be read", intake.Entry{Source: "json", Path: "/inbound/sms/json", ContentType: "application/json", Body: []byte(`{`)}, ""},
		{"one of a carrier that is gone", intake.Entry{Source: "gone"}, ""},
	} {
		if got := p.Describe(&tc.entry); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
