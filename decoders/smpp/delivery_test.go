package smpp

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/linxGnu/gosmpp/pdu"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/decoderstest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestParseDelivery(t *testing.T) {
	d, err := ParseDelivery(fields{
		service: "CMT", source: "447700900123", dest: "447800000001", class: 0x43, coding: 8, text: "\x05\x00\x03\x2a\x02\x01\x00A",
		tlvs: "001E 0005 3130303100 020C 0002 BEEF",
	}.pdu(t))
	relaytest.NoError(t, err)
	want := &Delivery{
		Header: Header{Length: d.Length, Command: DeliverSM, Sequence: 7},
		Source: Address{1, 1, "447700900123"}, Destination: Address{2, 8, "447800000001"},
		ESMClass: 0x43, DataCoding: 8,
		ShortMessage: []byte("\x05\x00\x03\x2a\x02\x01\x00A"),
		Parameters:   []Parameter{{0x001E, []byte("1001\x00")}, {0x020C, []byte{0xBE, 0xEF}}},
	}
	relaytest.Equal(t, "the delivery", d, want)
	d, err = ParseDelivery(fields{command: DataSM, source: "1", dest: "2", class: 4, coding: 3, tlvs: "0424 0002 6869"}.pdu(t))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the data_sm", d, &Delivery{
		Header: Header{Length: d.Length, Command: DataSM, Sequence: 7},
		Source: Address{1, 1, "1"}, Destination: Address{2, 8, "2"},
		ESMClass: 4, DataCoding: 3,
		Parameters: []Parameter{{0x0424, []byte("hi")}},
	})
	relaytest.Equal(t, "the user data of the data_sm", string(d.UserData()), "hi")
}

func TestParseDeliveryRefuses(t *testing.T) {
	long := strings.Repeat("4", 65)
	for name, tc := range map[string]struct {
		fields
		field  string
		offset int
	}{
		"a PDU without a message":                             {fields{command: EnquireLink, raw: "00"}, "command_id", 4},
		"a command_length that differs from the PDU's length": {fields{source: "1", dest: "2", commandLength: 17}, "command_length", 0},
		"an incomplete body":                                  {fields{raw: "00"}, "source_addr_ton", 17},
		"an unterminated service type":                        {fields{service: strings.Repeat("x", 30), source: "1", dest: "2"}, "service_type", 16},
		"an unterminated source":                              {fields{source: long, dest: "2"}, "source_addr", 19},
		"an unterminated destination":                         {fields{raw: "00 0000 3100 0000 32323232"}, "destination_addr", 23},
		"a text longer than the PDU":                          {fields{source: "1", dest: "2", text: "abc", length: 4}, "short_message", 35},
		"a missing sm_length":                                 {fields{raw: "00 0000 00 0000 00 00 00 00 00 00 00 00 00 00"}, "sm_length", 32},
		"an incomplete parameter header":                      {fields{source: "1", dest: "2", tlvs: "0424 00"}, "tlv", 35},
		"a parameter longer than the PDU":                     {fields{source: "1", dest: "2", tlvs: "0424 0003 6869"}, "tlv", 39},
		"an unterminated time":                                {fields{raw: "00 0000 00 0000 00 00 00 00 31313131313131313131313131313131313131"}, "schedule_delivery_time", 26},
		"a truncated message_payload after a text":            {fields{source: "1", dest: "2", text: "h", tlvs: "0424 0003 6869"}, "tlv", 40},
		"a parameter of 65,535 octets":                        {fields{source: "1", dest: "2", tlvs: "0424 FFFF 6869"}, "tlv", 39},
		"a data_sm that ends after esm_class":                 {fields{command: DataSM, raw: "00 0000 00 0000 00 04"}, "registered_delivery", 24},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseDelivery(tc.pdu(t))
			decoderstest.Refused(t, err, "smpp", tc.field, tc.offset)
		})
	}
	if _, err := ParseDelivery([]byte{0, 0, 0, 16}); err == nil {
		t.Error("ParseDelivery accepted four octets")
	}
}

func TestOctetsAfterTheMessageAreIgnored(t *testing.T) {
	receipted := []Parameter{{0x001E, []byte("1\x00")}}
	for name, tc := range map[string]struct {
		fields
		ignored    int
		parameters []Parameter
	}{
		"a NUL":                              {fields{text: "hi", tlvs: "00"}, 1, nil},
		"three NULs":                         {fields{text: "hi", tlvs: "000000"}, 3, nil},
		"another octet":                      {fields{text: "hi", tlvs: "2A"}, 1, nil},
		"a NUL before the parameters":        {fields{text: "hi", tlvs: "00 001E 0002 3100"}, 1, receipted},
		"two NULs before the parameters":     {fields{text: "hi", tlvs: "0000 001E 0002 3100"}, 2, receipted},
		"a NUL after the parameters":         {fields{text: "hi", tlvs: "001E 0002 3100 00"}, 1, receipted},
		"a NUL after a receipt":              {fields{class: 4, text: "id:1 stat:DELIVRD", tlvs: "00"}, 1, nil},
		"a NUL after a data_sm's payload":    {fields{command: DataSM, source: "1", dest: "2", tlvs: "0424 0002 6869 00"}, 1, []Parameter{{0x0424, []byte("hi")}}},
		"a truncated vendor parameter":       {fields{text: "hi", tlvs: "001E 0002 3100 1400 0009 61"}, 5, receipted},
		"no octets after the message":        {fields{text: "hi"}, 0, nil},
		"four NULs are an empty parameter":   {fields{text: "hi", tlvs: "00000000"}, 0, []Parameter{{0, []byte{}}}},
		"a NUL after a text with a UDH":      {fields{class: 0x40, text: "\x05\x00\x03\x2a\x02\x01hi", tlvs: "00"}, 1, nil},
		"a NUL before 256 octets of payload": {fields{tlvs: "00 0424 0100" + strings.Repeat("61", 256)}, 1, []Parameter{{0x0424, []byte(strings.Repeat("a", 256))}}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := ParseDelivery(tc.pdu(t))
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the number of ignored octets", d.Ignored, tc.ignored)
			relaytest.Equal(t, "the parameters", d.Parameters, tc.parameters)
		})
	}
}

func TestSplit(t *testing.T) {
	for name, tc := range map[string]struct {
		fields
		udh, text string
		malformed bool
	}{
		"a short message":                         {fields{text: "hello"}, "", "hello", false},
		"a header before the text":                {fields{class: 0x40, text: "\x05\x00\x03\x01\x02\x01hi"}, "\x05\x00\x03\x01\x02\x01", "hi", false},
		"a header alone":                          {fields{class: 0x40, text: "\x02\x70\x00"}, "\x02\x70\x00", "", false},
		"a payload":                               {fields{tlvs: "0424 0002 6869"}, "", "hi", false},
		"a payload with a header":                 {fields{class: 0x40, tlvs: "0424 0005 0270006869"}, "\x02\x70\x00", "hi", false},
		"a payload and a truncated short_message": {fields{text: "h", tlvs: "0424 0002 6869"}, "", "hi", false},
		"an empty payload and a short_message":    {fields{text: "h", tlvs: "0424 0000"}, "", "h", false},
		"a header longer than the text":           {fields{class: 0x40, text: "\x09hi"}, "", "\x09hi", true},
		"a missing header":                        {fields{class: 0x40}, "", "", true},
		"a header in a data_sm":                   {fields{command: DataSM, class: 0xC3, tlvs: "0424 0003 01FF69"}, "\x01\xff", "i", false},
		"a header of length zero":                 {fields{class: 0x40, text: "\x00hi"}, "\x00", "hi", false},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := ParseDelivery(tc.pdu(t))
			relaytest.NoError(t, err)
			udh, text, ok := d.Split()
			relaytest.Equal(t, "the header", string(udh), tc.udh)
			relaytest.Equal(t, "the text", string(text), tc.text)
			relaytest.Equal(t, "whether the header is malformed", !ok, tc.malformed)
		})
	}
}

func TestSegment(t *testing.T) {
	for name, tc := range map[string]struct {
		tlvs string
		want Segment
	}{
		"all three":             {"020C 0002 0102 020E 0001 03 020F 0001 02", Segment{0x0102, 3, 2}},
		"numbers in two octets": {"020C 0002 0102 020E 0002 0003 020F 0002 0001", Segment{0x0102, 3, 1}},
		"no parameters":         {"", Segment{}},
		"no reference":          {"020E 0001 03 020F 0001 02", Segment{}},
		"no total":              {"020C 0002 0102 020F 0001 02", Segment{}},
		"no number":             {"020C 0002 0102 020E 0001 03", Segment{}},
		"number 0":              {"020C 0002 0102 020E 0001 03 020F 0001 00", Segment{}},
		"a number too high":     {"020C 0002 0102 020E 0001 03 020F 0001 04", Segment{}},
		"a reference too short": {"020C 0001 02 020E 0001 03 020F 0001 02", Segment{}},
		"an empty total":        {"020C 0002 0102 020E 0000 020F 0001 02", Segment{}},
		"a total of 256":        {"020C 0002 0102 020E 0002 0100 020F 0001 02", Segment{}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := ParseDelivery(fields{tlvs: tc.tlvs}.pdu(t))
			relaytest.NoError(t, err)
			got, ok := d.Segment()
			relaytest.Equal(t, "the segment", got, tc.want)
			relaytest.Equal(t, "whether there is a segment", ok, tc.want.Total > 0)
		})
	}
}

func TestCodingOf(t *testing.T) {
	for dataCoding, want := range map[byte]Coding{
		0x00: Default, 0x01: ASCII, 0x02: Octets, 0x03: Latin1, 0x04: Octets, 0x05: Octets, 0x06: Cyrillic, 0x07: Hebrew,
		0x08: UCS2, 0x09: Octets, 0x0D: Octets, 0x10: Default, 0x14: Octets, 0x18: UCS2, 0x1C: Octets, 0x20: Octets,
		0xC0: Default, 0xD8: Default, 0xE0: UCS2, 0xF0: Default, 0xF3: Default, 0xF4: Octets, 0xF7: Octets, 0xF8: Default,
	} {
		if got := CodingOf(dataCoding); got != want {
			t.Errorf("CodingOf(0x%02X) = %d, want %d", dataCoding, got, want)
		}
	}
}

// FuzzParseDelivery checks that gosmpp parses the same addresses and ESM class.
func FuzzParseDelivery(f *testing.F) {
	for _, seed := range []fields{
		{service: "CMT", source: "447700900123", dest: "447800000001", text: "hello"},
		{class: 0x40, text: "\x05\x00\x03\x2a\x02\x01hi", tlvs: "020C 0002 0102 020E 0001 03 020F 0001 02"},
		{class: 4, text: "id:1001 stat:DELIVRD err:000 text:x", tlvs: "001E 0005 3130303100 0427 0001 02"},
		{command: DataSM, source: "1", dest: "2", coding: 8, tlvs: "0424 0002 0041"},
		{text: "abc", length: 200},
	} {
		f.Add(seed.pdu(f))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		original := bytes.Clone(raw)
		d, err := ParseDelivery(raw)
		if !bytes.Equal(raw, original) {
			t.Fatal("the PDU was changed")
		}
		if err != nil {
			if e, ok := errors.AsType[*decoders.Error](err); !ok || e.Offset < 0 || e.Offset > len(raw) {
				t.Fatalf("the error has no valid offset: %v", err)
			}
			return
		}
		udh, text, ok := d.Split()
		if ok && len(udh)+len(text) != len(d.UserData()) {
			t.Fatalf("%x is split into %x and %x", d.UserData(), udh, text)
		}
		if s, ok := d.Segment(); ok && (s.Number < 1 || s.Number > s.Total) {
			t.Fatalf("segment number %d of reference %d is not from 1 to %d", s.Number, s.Reference, s.Total)
		}
		d.Receipt()
		gosmppPDU, err := pdu.Parse(bytes.NewReader(raw))
		if deliverSM, isDeliverSM := gosmppPDU.(*pdu.DeliverSM); err == nil && isDeliverSM {
			relaytest.Equal(t, "the source parsed by gosmpp", deliverSM.SourceAddr.Address(), d.Source.Digits)
			relaytest.Equal(t, "the destination parsed by gosmpp", deliverSM.DestAddr.Address(), d.Destination.Digits)
			relaytest.Equal(t, "the ESM class parsed by gosmpp", deliverSM.EsmClass, d.ESMClass)
		}
	})
}
