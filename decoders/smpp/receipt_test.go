package smpp

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestIsReceipt(t *testing.T) {
	for name, tc := range map[string]struct {
		fields
		want bool
	}{
		"a message": {fields{}, false},
		"a receipt": {fields{class: 0x04}, true},
		"a receipt with a UDH and a messaging mode": {fields{class: 0x47, text: "\x00"}, true},
		"an intermediate notification":              {fields{class: 0x20}, true},
		"an acknowledgement by the handset":         {fields{class: 0x08}, false},
		"an acknowledgement by the user":            {fields{class: 0x10}, false},
		"a reply path":                              {fields{class: 0x80}, false},
		"receipt parameters with an ESM class of 0": {fields{tlvs: "001E 0002 3100 0427 0001 02"}, true},
		"an id alone":                               {fields{tlvs: "001E 0002 3100"}, false},
		"a state alone":                             {fields{tlvs: "0427 0001 02"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := ParseDelivery(tc.pdu(t))
			relaytest.NoError(t, err)
			relaytest.Equal(t, "whether it is a receipt", d.IsReceipt(), tc.want)
		})
	}
}

func TestParseReceipt(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want Receipt
	}{
		"the format of appendix B": {
			"id:1001 sub:001 dlvrd:001 submit date:2601011200 done date:2601011201 stat:DELIVRD err:000 text:hello",
			Receipt{"1001", "DELIVRD", "000"},
		},
		"dates of 12 digits, another case, no text": {
			"id:0A1B-c sub:001 dlvrd:000 submit date:260101120000 done date:260101120100 Stat:undeliv Err:0x05", Receipt{"0A1B-c", "UNDELIV", "0x05"},
		},
		"fields in another order":               {"stat:EXPIRED id:77", Receipt{"77", "EXPIRED", ""}},
		"blanks after the colons":               {"id: 77 stat: REJECTD err: 12", Receipt{"77", "REJECTD", "12"}},
		"a text that looks like a receipt":      {"id:77 stat:DELIVRD text:id:1 stat:UNDELIV err:9", Receipt{"77", "DELIVRD", ""}},
		"a text in an unknown alphabet":         {"id:77 Stat:DELIVRD Text:\xe9\xff", Receipt{"77", "DELIVRD", ""}},
		"an empty field before the next":        {"id: sub:001 stat:DELIVRD", Receipt{"", "DELIVRD", ""}},
		"a field name within a word":            {"uid:5 id:6 stat:ACCEPTD", Receipt{"6", "ACCEPTD", ""}},
		"a NUL at the end":                      {"id:77 stat:DELIVRD\x00", Receipt{"77", "DELIVRD", ""}},
		"an id with a colon":                    {"id:a:7 stat:DELIVRD", Receipt{"a:7", "DELIVRD", ""}},
		"line breaks between the fields":        {"id:77\r\nsub:001\nstat:DELIVRD\r\nerr:000\ntext:id:1", Receipt{"77", "DELIVRD", "000"}},
		"a tab, and an empty field":             {"id:77\tstat:\nerr:1", Receipt{"77", "", "1"}},
		"a text without fields":                 {"hello there", Receipt{}},
		"an empty string":                       {"", Receipt{}},
		"a field that ends the text":            {"stat:", Receipt{}},
		"a letter that is longer in lower case": {"Ⱥ id:5 STAT:DELIVRD", Receipt{"5", "DELIVRD", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			relaytest.Equal(t, "the receipt", ParseReceipt([]byte(tc.text)), tc.want)
		})
	}
}

func TestReceiptText(t *testing.T) {
	const ascii = "id:77 stat:DELIVRD err:000 text:"
	const vendor = "id:S21311242091636504458661711 sub:001 dlvrd:001 submit date:170609163650 done date:170609163657 stat:DELIVRD err:000 text: "
	littleEndian := func(text string) []byte {
		octets := sms.EncodeUCS2(text)
		for i := 0; i < len(octets); i += 2 {
			octets[i], octets[i+1] = octets[i+1], octets[i]
		}
		return octets
	}
	septets, err := sms.NewAlphabet().Encode(ascii)
	relaytest.NoError(t, err)
	for name, tc := range map[string]struct {
		coding byte
		octets []byte
		text   string
		id     string
	}{
		"UTF-16":                                    {8, sms.EncodeUCS2(ascii + "é"), ascii + "é", "77"},
		"UTF-16 with a byte order mark":             {8, sms.EncodeUCS2("\ufeff" + ascii + "é"), ascii + "é", "77"},
		"UTF-16 and a NUL":                          {8, append(sms.EncodeUCS2(ascii), 0), ascii, "77"},
		"UTF-16 declared as the default alphabet":   {0, sms.EncodeUCS2(ascii), ascii, "77"},
		"little-endian with a byte order mark":      {8, append([]byte("\xff\xfe"), littleEndian(ascii)...), ascii, "77"},
		"little-endian":                             {8, littleEndian(ascii), ascii, "77"},
		"ASCII of an even length declared as UCS-2": {8, []byte(vendor), vendor, "S21311242091636504458661711"},
		"ASCII of an odd length declared as UCS-2":  {8, []byte(ascii + "."), ascii + ".", "77"},
		"ASCII declared as a UCS-2 flash message":   {0x18, []byte(vendor), vendor, "S21311242091636504458661711"},
		"ASCII declared as 8-bit data":              {4, []byte(vendor), vendor, "S21311242091636504458661711"},
		"packed septets":                            {0, sms.Pack(septets, 0), ascii, "77"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Delivery{ESMClass: 4, DataCoding: tc.coding, ShortMessage: tc.octets}
			relaytest.Equal(t, "the text", d.ReceiptText(), tc.text)
			relaytest.Equal(t, "the receipt", d.Receipt(), Receipt{tc.id, "DELIVRD", "000"})
		})
	}
}

func TestReceiptParametersHavePrecedenceOverTheText(t *testing.T) {
	for name, tc := range map[string]struct {
		tlvs string
		want Receipt
	}{
		"an id and a state":               {"001E 0005 3939393900 0427 0001 05", Receipt{"9999", "UNDELIV", "001"}},
		"an id without its NUL":           {"001E 0004 39393939", Receipt{"9999", "DELIVRD", "001"}},
		"an unknown state":                {"0427 0001 0A", Receipt{"1001", "DELIVRD", "001"}},
		"the state SCHEDULED of SMPP 5.0": {"0427 0001 00", Receipt{"1001", "SCHEDULED", "001"}},
		"the state SKIPPED of SMPP 5.0":   {"0427 0001 09", Receipt{"1001", "SKIPPED", "001"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := ParseDelivery(fields{class: 4, text: "id:1001 stat:DELIVRD err:001", tlvs: tc.tlvs}.pdu(t))
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the receipt", d.Receipt(), tc.want)
		})
	}
}

func TestAnUnknownReceiptStateIsNamedByItsNumber(t *testing.T) {
	d, err := ParseDelivery(fields{class: 4, tlvs: "001E 0005 3939393900 0427 0001 77"}.pdu(t))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the receipt", d.Receipt(), Receipt{"9999", "message_state 119", ""})
}

func FuzzParseReceipt(f *testing.F) {
	f.Add([]byte("id:1001 sub:001 dlvrd:001 submit date:2601011200 done date:2601011201 stat:DELIVRD err:000 text:hello"))
	f.Add([]byte("id: 77 Stat: x text:\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := ParseReceipt(text)
		for _, v := range []string{r.ID, r.State, r.Error} {
			if len(v) > 3*len(text) || strings.Contains(v, " ") {
				t.Fatalf("the receipt %q has the field %q", text, v)
			}
		}
	})
}
