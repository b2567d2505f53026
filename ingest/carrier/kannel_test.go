package carrier

import (
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestKannelPostsAreParsed(t *testing.T) {
	const addresses = "id=77e0&from=%2B447700900123&to=447860000001&smsc=fake&"
	base := inbound.Message{CarrierID: "77e0", From: "447700900123", To: "447860000001", Reference: "fake", Coding: sms.GSM}
	changed := func(f func(*inbound.Message)) inbound.Message { m := base; f(&m); return m }
	for name, tc := range map[string]struct {
		query, form string
		want        inbound.Message
	}{
		"7-bit":           {addresses + "text=h%C3%A9+you&coding=0&charset=GSM&udh=&time=1782903600", "", changed(func(m *inbound.Message) { m.Text, m.SentAt = "hé you", time.Unix(1782903600, 0).UTC() })},
		"a date and time": {addresses + "text=a&time=2026-07-01+11:00:00", "", changed(func(m *inbound.Message) { m.Text, m.SentAt = "a", time.Unix(1782903600, 0).UTC() })},
		"an invalid time": {addresses + "text=a&time=%25T", "", changed(func(m *inbound.Message) {
			m.Text = "a"
			m.Notes.Add(`time: the time "%T" is invalid; the message has no time of sending`)
		})},
		"an unknown coding":           {addresses + "text=a&coding=-1", "", changed(func(m *inbound.Message) { m.Text = "a" })},
		"no coding and an empty text": {addresses + "text=", "", base},
		"Latin-1 with a charset":      {addresses + "text=%E9&charset=ISO-8859-1&coding=0", "", changed(func(m *inbound.Message) { m.Text = "é" })},
		"Latin-1 without a charset":   {addresses + "text=%E9a", "", changed(func(m *inbound.Message) { m.Text = "éa" })},
		"binary with UDH": {addresses + "text=%00%FF%2B&coding=1&udh=%06%05%04%0B%84%23%F0", "", changed(func(m *inbound.Message) {
			m.Coding, m.Data, m.UDH = sms.Binary, []byte{0, 255, '+'}, []byte{6, 5, 4, 0x0b, 0x84, 0x23, 0xf0}
		})},
		"Unicode in UTF-16BE":                          {addresses + "text=%4F%60%D8%3C%DF%89&coding=2&charset=UTF-16BE", "", changed(func(m *inbound.Message) { m.Text, m.Coding = "你🎉", sms.UCS2 })},
		"Unicode without a charset":                    {addresses + "text=O%60Y%7D&coding=2", "", changed(func(m *inbound.Message) { m.Text, m.Coding = "你好", sms.UCS2 })},
		"Unicode recoded to UTF-8":                     {addresses + "text=%E4%BD%A0&coding=2&charset=UTF-8", "", changed(func(m *inbound.Message) { m.Text, m.Coding = "你", sms.UCS2 })},
		"Unicode recoded to UTF-8 with a 7-bit coding": {addresses + "text=%E4%BD%A0%26&coding=0&charset=UTF-8", "", changed(func(m *inbound.Message) { m.Text, m.Coding = "你&", sms.UCS2 })},
		"Unicode of an odd length":                     {addresses + "text=%E4%BD%A0&coding=2", "", changed(func(m *inbound.Message) { m.Text, m.Coding = "你", sms.UCS2 })},
		"a Unicode part": {addresses + "text=%4F%60%D8&coding=2&udh=%05%00%03%CC%02%01", "", changed(func(m *inbound.Message) {
			m.Text, m.Octets, m.Coding, m.UDH, m.Stat = "你", []byte{0x4f, 0x60, 0xd8}, sms.UCS2, []byte{5, 0, 3, 0xcc, 2, 1}, inbound.Concatenated
		})},
		"a 7-bit part": {addresses + "text=a&udh=%05%00%03%CC%02%01", "", changed(func(m *inbound.Message) {
			m.Text, m.UDH, m.Stat = "a", []byte{5, 0, 3, 0xcc, 2, 1}, inbound.Concatenated
		})},
		"no id":              {"from=%2B447700900123&to=447860000001&smsc=fake&text=a", "", changed(func(m *inbound.Message) { m.CarrierID, m.Text = "", "a" })},
		"a form in the body": {"", addresses + "text=a%26b", changed(func(m *inbound.Message) { m.Text = "a&b" })},
	} {
		t.Run(name, func(t *testing.T) {
			e := intake.Entry{Query: tc.query, Body: []byte(tc.form)}
			if tc.form != "" {
				e.ContentType = "Application/X-WWW-Form-Urlencoded; charset=utf-8"
			}
			got, err := Adapters()["kannel"].Parse(&e)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the messages", got, []inbound.Message{tc.want}, emptyHeaderIsNone)
		})
	}
}

func TestInvalidKannelPostsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ query, fields string }{
		"no parameters":              {"", "from text to"},
		"an unexpanded template":     {"from=%p&to=%P", "query"},
		"no text":                    {"from=1&to=2", "text"},
		"another coding":             {"from=1&to=2&text=a&coding=3", "coding"},
		"a name as the recipient":    {"from=1&to=Bank&text=a", "to"},
		"a sender that is not UTF-8": {"from=%ff&to=2&text=a", "from"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Adapters()["kannel"].Parse(&intake.Entry{Query: tc.query})
			if got := fieldsIn(err); got != tc.fields {
				t.Errorf("fields = %q (%v), want %q", got, err, tc.fields)
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
	f.Fuzz(func(t *testing.T, query string) { checkParse(t, a, intake.Entry{Query: query}) })
}
