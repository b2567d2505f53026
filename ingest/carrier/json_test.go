package carrier

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestJSONPostsAreParsed(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want inbound.Message
	}{
		"a text": {`{"id":"c-1","from":"+44 7700 900123","to":"+447860000001","text":"hello"}`,
			inbound.Message{CarrierID: "c-1", From: "447700900123", To: "447860000001", Text: "hello", Coding: sms.GSM}},
		"numbers as JSON numbers, and optional fields": {`{"id":7,"from":447700900123,"to":447860000001,"text":"x","coding":16,"sent_at":"2026-07-01T12:00:00+01:00","network":"Example","ignored":{"a":[]}}`,
			inbound.Message{CarrierID: "7", From: "447700900123", To: "447860000001", Text: "x", Coding: sms.UCS2, Network: "Example",
				SentAt: time.Date(2026, 7, 1, 11, 0, 0, 0, time.UTC), Notes: decoders.Notes{"ignored: unknown field ignored"}}},
		"a text outside the 7-bit alphabet": {`{"id":"1","from":"Bank","to":"66777","text":"你好 🎉"}`,
			inbound.Message{CarrierID: "1", From: "Bank", To: "66777", Text: "你好 🎉", Coding: sms.UCS2}},
		"an empty text":                     {`{"id":"1","from":"Bank","to":"66777","text":""}`, inbound.Message{CarrierID: "1", From: "Bank", To: "66777", Coding: sms.GSM}},
		"a number with 00":                  {`{"id":"1","from":"00447700900123","to":"00447860000001","text":"a"}`, inbound.Message{CarrierID: "1", From: "447700900123", To: "447860000001", Text: "a", Coding: sms.GSM}},
		"octets":                            {`{"id":"1","from":"1","to":"2","data":"00FF","udh":"0605040B8423F0"}`, inbound.Message{CarrierID: "1", From: "1", To: "2", Data: []byte{0, 255}, UDH: []byte{6, 5, 4, 0x0b, 0x84, 0x23, 0xf0}, Coding: sms.Binary}},
		"7-bit octets are text":             {`{"id":"1","from":"1","to":"2","data":"1b6500","coding":7}`, inbound.Message{CarrierID: "1", From: "1", To: "2", Text: "€@", Coding: sms.GSM}},
		"7-bit octets in Hindi":             {`{"id":"1","from":"1","to":"2","data":"4d50","coding":7,"udh":"03250106"}`, inbound.Message{CarrierID: "1", From: "1", To: "2", Text: "हा", Coding: sms.GSM, UDH: []byte{3, 0x25, 1, 6}}},
		"a byte order mark before the body": {"\ufeff" + `{"id":"1","from":"1","to":"2","text":"A"}`, inbound.Message{CarrierID: "1", From: "1", To: "2", Text: "A", Coding: sms.GSM}},
		"UCS-2 octets are text":             {`{"id":"1","from":"1","to":"2","data":"4f60d83cdf89","coding":"16"}`, inbound.Message{CarrierID: "1", From: "1", To: "2", Text: "你🎉", Coding: sms.UCS2}},
		"a part of a message": {`{"id":"1","from":"1","to":"2","data":"41","coding":7,"udh":"050003cc0201"}`,
			inbound.Message{CarrierID: "1", From: "1", To: "2", Text: "A", Octets: []byte("A"), Coding: sms.GSM, UDH: []byte{5, 0, 3, 0xcc, 2, 1}, Stat: inbound.Concatenated}},
		"a part that ends within a character": {`{"id":"1","from":"1","to":"2","data":"0041d8","coding":16,"udh":"050003cc0201"}`,
			inbound.Message{CarrierID: "1", From: "1", To: "2", Text: "A", Octets: []byte{0, 0x41, 0xd8}, Coding: sms.UCS2, UDH: []byte{5, 0, 3, 0xcc, 2, 1}, Stat: inbound.Concatenated}},
		"a segment": {`{"id":"1","from":"1","to":"2","text":"A","sar_msg_ref_num":65535,"sar_total_segments":"3","sar_segment_seqnum":3}`,
			inbound.Message{CarrierID: "1", From: "1", To: "2", Text: "A", Coding: sms.GSM, Stat: inbound.Concatenated,
				Part: &inbound.Part{Kind: inbound.ReferenceSAR, Reference: 65535, Total: 3, Number: 3}}},
		"an invalid UDH": {`{"id":"1","from":"1","to":"2","text":"A","udh":"0500"}`,
			inbound.Message{CarrierID: "1", From: "1", To: "2", Text: "A", Coding: sms.GSM, UDH: []byte{5, 0}, Stat: inbound.Indecipherable}},
		"null fields": {`{"id":"1","from":"1","to":"2","text":"A","data":null,"udh":null,"coding":null}`,
			inbound.Message{CarrierID: "1", From: "1", To: "2", Text: "A", Coding: sms.GSM}},
		"line ends in the sender": {`{"id":"1","from":"x\r\ny","to":"2","text":"A"}`, inbound.Message{CarrierID: "1", From: "x\r\ny", To: "2", Text: "A", Coding: sms.GSM}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Adapters()["json"].Parse(&intake.Entry{Body: []byte(tc.body)})
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the messages", got, []inbound.Message{tc.want}, emptyHeaderIsNone)
		})
	}
}

func TestJSONFieldsAreReadFromTheQuery(t *testing.T) {
	got, err := Adapters()["json"].Parse(&intake.Entry{Query: "id=1&from=%2B441&to=442&text=a%26b"})
	relaytest.NoError(t, err)
	if len(got) != 1 {
		t.Fatalf("messages = %d, want 1", len(got))
	}
	relaytest.Equal(t, "the originator", got[0].From, "441")
	relaytest.Equal(t, "the text", got[0].Text, "a&b")
}

func TestInvalidJSONPostsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ body, fields string }{
		"an empty body":                      {``, "json"},
		"invalid JSON":                       {`{"id":`, "json"},
		"text after the object":              {`{"id":"1"} x`, "json"},
		"a list":                             {`[]`, "body"},
		"an empty object":                    {`{}`, "from id text to"},
		"a sender that is a list":            {`{"id":"1","from":["a"],"to":"2","text":"a"}`, "from"},
		"an id that is true":                 {`{"id":true,"from":"1","to":"2","text":"a"}`, "id"},
		"an empty id":                        {`{"id":"","from":"1","to":"2","text":"a"}`, "id"},
		"a name as the recipient":            {`{"id":"1","from":"1","to":"Bank","text":"a"}`, "to"},
		"a number of 16 digits":              {`{"id":"1","from":"1","to":"1234567890123456","text":"a"}`, "to"},
		"text and data":                      {`{"id":"1","from":"1","to":"2","text":"a","data":"00"}`, "data"},
		"text with the coding of data":       {`{"id":"1","from":"1","to":"2","text":"a","coding":8}`, "coding"},
		"another coding":                     {`{"id":"1","from":"1","to":"2","text":"a","coding":9}`, "coding"},
		"a fractional coding":                {`{"id":"1","from":"1","to":"2","text":"a","coding":7.5}`, "coding"},
		"data that is not hex":               {`{"id":"1","from":"1","to":"2","data":"0g"}`, "data"},
		"half an octet":                      {`{"id":"1","from":"1","to":"2","data":"000"}`, "data"},
		"an octet above 0x7F in 7-bit data":  {`{"id":"1","from":"1","to":"2","data":"80","coding":7}`, "data"},
		"half a UCS-2 character":             {`{"id":"1","from":"1","to":"2","data":"004","coding":16}`, "data"},
		"a UDH that is not hex":              {`{"id":"1","from":"1","to":"2","text":"a","udh":"xx"}`, "udh"},
		"a UDH above the limit":              {`{"id":"1","from":"1","to":"2","text":"a","udh":"` + strings.Repeat("00", 257) + `"}`, "udh"},
		"a segment without total and number": {`{"id":"1","from":"1","to":"2","text":"a","sar_msg_ref_num":1}`, "sar_segment_seqnum sar_total_segments"},
		"a segment number above the total":   {`{"id":"1","from":"1","to":"2","text":"a","sar_msg_ref_num":1,"sar_total_segments":2,"sar_segment_seqnum":3}`, "sar_segment_seqnum"},
		"a total of 256":                     {`{"id":"1","from":"1","to":"2","text":"a","sar_msg_ref_num":1,"sar_total_segments":256,"sar_segment_seqnum":1}`, "sar_total_segments"},
		"a reference of 17 bits":             {`{"id":"1","from":"1","to":"2","text":"a","sar_msg_ref_num":65536,"sar_total_segments":2,"sar_segment_seqnum":1}`, "sar_msg_ref_num"},
		"an invalid time":                    {`{"id":"1","from":"1","to":"2","text":"a","sent_at":"yesterday"}`, "sent_at"},
		"a sender above the limit":           {`{"id":"1","from":"` + strings.Repeat("x", 256) + `","to":"2","text":"a"}`, "from"},
		"a text above the limit":             {`{"id":"1","from":"1","to":"2","text":"` + strings.Repeat("x", 65537) + `"}`, "text"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Adapters()["json"].Parse(&intake.Entry{Body: []byte(tc.body)})
			if got := fieldsIn(err); got != tc.fields {
				t.Errorf("fields = %q (%v), want %q", got, err, tc.fields)
			}
		})
	}
}

// fieldsIn returns the fields of an error in order, "json" for params.ErrSyntax, or "" for other
// errors.
func fieldsIn(err error) string {
	if errors.Is(err, params.ErrSyntax) {
		return "json"
	}
	var names []string
	for _, name := range []string{"body", "coding", "data", "from", "id", "query", "sar_msg_ref_num", "sar_segment_seqnum", "sar_total_segments", "sent_at", "text", "to", "udh"} {
		if len(relay.FieldsOf(err)[name]) > 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// checkParse checks that Parse returns a valid message or an error with fields.
func checkParse(t *testing.T, a Adapter, e intake.Entry) {
	t.Helper()
	got, err := a.Parse(&e)
	if err == nil {
		checkMessage(t, got[0])
	} else if fieldsIn(err) == "" {
		t.Fatalf("%q %q: error without fields: %v", e.Query, e.Body, err)
	}
}

// checkMessage checks that a message can be routed and has valid fields.
func checkMessage(t *testing.T, m inbound.Message) {
	t.Helper()
	d := inbound.Decide(&inbound.Message{ID: "x", To: m.To, Coding: m.Coding}, nil, inbound.Settings{})
	if d.State != "unrouted" {
		t.Fatalf("the message cannot be routed: %s", d.Reason)
	}
	if !utf8.ValidString(m.Text) {
		t.Fatalf("text = %q, want UTF-8", m.Text)
	}
	if !utf8.ValidString(m.From) || m.From == "" {
		t.Fatalf("originator = %q, want UTF-8", m.From)
	}
	if m.Coding == sms.Binary && m.Text != "" {
		t.Fatalf("text of a binary message = %q, want none", m.Text)
	}
	if m.Coding != sms.Binary && m.Data != nil {
		t.Fatalf("data of a message with the coding %d = %x, want none", m.Coding, m.Data)
	}
}

func FuzzParseJSON(f *testing.F) {
	f.Add([]byte(`{"id":"c-1","from":"+447700900123","to":"+447860000001","text":"hello"}`))
	f.Add([]byte(`{"id":1,"from":"1","to":"2","data":"1b65","udh":"050003cc0201","coding":7,"sent_at":"2026-07-01T12:00:00Z"}`))
	f.Add([]byte(`[[[`))
	a := Adapters()["json"]
	f.Fuzz(func(t *testing.T, body []byte) { checkParse(t, a, intake.Entry{Body: body}) })
}
