package carrier

import (
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestParseKannel(t *testing.T) {
	const who = "id=77e0&from=%2B447700900123&to=447860000001&smsc=fake&"
	base := inbound.Message{CarrierID: "77e0", From: "447700900123", To: "447860000001", Reference: "fake", Coding: sms.GSM}
	with := func(f func(*inbound.Message)) inbound.Message { m := base; f(&m); return m }
	for name, tc := range map[string]struct {
		query, form string
		want        inbound.Message
	}{
		"7-bit":           {who + "text=h%C3%A9+you&coding=0&charset=GSM&udh=&time=1782903600", "", with(func(m *inbound.Message) { m.Text, m.SentAt = "hé you", time.Unix(1782903600, 0).UTC() })},
		"a date and time": {who + "text=a&time=2026-07-01+11:00:00", "", with(func(m *inbound.Message) { m.Text, m.SentAt = "a", time.Unix(1782903600, 0).UTC() })},
		"a time that is none": {who + "text=a&time=%25T", "", with(func(m *inbound.Message) {
			m.Text = "a"
			m.Notes.Add(`time: the time "%T" was not understood; the message has no time of sending`)
		})},
		"a coding that Kannel does not know": {who + "text=a&coding=-1", "", with(func(m *inbound.Message) { m.Text = "a" })},
		"no coding and an empty text":        {who + "text=", "", base},
		"Latin-1 that says so":               {who + "text=%E9&charset=ISO-8859-1&coding=0", "", with(func(m *inbound.Message) { m.Text = "é" })},
		"Latin-1 that does not":              {who + "text=%E9a", "", with(func(m *inbound.Message) { m.Text = "éa" })},
		"binary with UDH": {who + "text=%00%FF%2B&coding=1&udh=%06%05%04%0B%84%23%F0", "", with(func(m *inbound.Message) {
			m.Coding, m.Data, m.UDH = sms.Binary, []byte{0, 255, '+'}, []byte{6, 5, 4, 0x0b, 0x84, 0x23, 0xf0}
		})},
		"Unicode as Kannel has it":           {who + "text=%4F%60%D8%3C%DF%89&coding=2&charset=UTF-16BE", "", with(func(m *inbound.Message) { m.Text, m.Coding = "你🎉", sms.UCS2 })},
		"Unicode without a charset":          {who + "text=O%60Y%7D&coding=2", "", with(func(m *inbound.Message) { m.Text, m.Coding = "你好", sms.UCS2 })},
		"Unicode that was recoded":           {who + "text=%E4%BD%A0&coding=2&charset=UTF-8", "", with(func(m *inbound.Message) { m.Text, m.Coding = "你", sms.UCS2 })},
		"Unicode that mo-recode calls 7-bit": {who + "text=%E4%BD%A0%26&coding=0&charset=UTF-8", "", with(func(m *inbound.Message) { m.Text, m.Coding = "你&", sms.UCS2 })},
		"Unicode that cannot be UCS-2":       {who + "text=%E4%BD%A0&coding=2", "", with(func(m *inbound.Message) { m.Text, m.Coding = "你", sms.UCS2 })},
		"a Unicode part that was not joined": {who + "text=%4F%60%D8&coding=2&udh=%05%00%03%CC%02%01", "", with(func(m *inbound.Message) {
			m.Text, m.Octets, m.Coding, m.UDH, m.Status = "你", []byte{0x4f, 0x60, 0xd8}, sms.UCS2, []byte{5, 0, 3, 0xcc, 2, 1}, inbound.Concatenated
		})},
		"a part that was not joined": {who + "text=a&udh=%05%00%03%CC%02%01", "", with(func(m *inbound.Message) {
			m.Text, m.UDH, m.Status = "a", []byte{5, 0, 3, 0xcc, 2, 1}, inbound.Concatenated
		})},
		"no id":              {"from=%2B447700900123&to=447860000001&smsc=fake&text=a", "", with(func(m *inbound.Message) { m.CarrierID, m.Text = "", "a" })},
		"a form in the body": {"", who + "text=a%26b", with(func(m *inbound.Message) { m.Text = "a&b" })},
	} {
		t.Run(name, func(t *testing.T) {
			e := intake.Entry{Query: tc.query, Body: []byte(tc.form)}
			if tc.form != "" {
				e.ContentType = "application/x-www-form-urlencoded; charset=utf-8"
			}
			got, err := Adapters()["kannel"].Parse(&e)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the messages", got, []inbound.Message{tc.want}, emptyHeaderIsNone)
		})
	}
}

func TestParseKannelRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ query, fields string }{
		"nothing":                      {"", "from text to"},
		"a template that was not made": {"from=%p&to=%P", "query"},
		"no text":                      {"from=1&to=2", "text"},
		"another coding":               {"from=1&to=2&text=a&coding=3", "coding"},
		"a number that is a name":      {"from=1&to=Bank&text=a", "to"},
		"a sender that is no text":     {"from=%ff&to=2&text=a", "from"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Adapters()["kannel"].Parse(&intake.Entry{Query: tc.query})
			if got := fieldsIn(err); got != tc.fields {
				t.Errorf("got %q (%v), want %q", got, err, tc.fields)
			}
		})
	}
}

func FuzzParseKannel(f *testing.F) {
	f.Add("id=1&from=%2B447700900123&to=447860000001&text=a&coding=0&udh=&time=1782903600&smsc=fake")
	f.Add("from=1&to=2&text=O%60Y%7D&coding=2")
	f.Add("from=1&to=2&text=%00%FF&coding=1&udh=%05%00%03")
	f.Add("from=%p")
	a := Adapters()["kannel"]
	f.Fuzz(func(t *testing.T, query string) { parsesSoundly(t, a, intake.Entry{Query: query}) })
}
