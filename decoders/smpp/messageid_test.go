package smpp

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestReceiptIDs(t *testing.T) {
	for name, tc := range map[string]struct {
		responseID string // the id in the response to submit_sm
		receiptID  string // the id in the receipt
		want       bool
	}{
		"equal ids":                                               {"1001", "1001", true},
		"upper-case digits in the receipt":                        {"1a2b", "1A2B", true},
		"leading zeros in the receipt":                            {"1a2b", "00001A2B", true},
		"leading zeros in the response":                           {"0001001", "1001", true},
		"a hexadecimal response and a decimal receipt":            {"1A2B", "6699", true},
		"a hexadecimal response and a decimal receipt with zeros": {"00001A2B", "0000006699", true},
		"a hexadecimal response of decimal digits":                {"1234", "4660", true},
		"a decimal response and a hexadecimal receipt":            {"6699", "1a2b", true},
		"a hexadecimal receipt of decimal digits":                 {"4660", "1234", true},
		"a decimal receipt of 64 bits":                            {"ffffffffffffffff", "18446744073709551615", true},
		"an id that is not a number":                              {"msg-77_X", "MSG-77_x", true},
		"a UUID":                                                  {"5f0c4a1e-0000-4000-8000-00000000000a", "5F0C4A1E-0000-4000-8000-00000000000A", true},
		"zeros":                                                   {"0", "000", true},
		"another id":                                              {"1001", "1002", false},
		"a number with a sign":                                    {"10", "+16", false},
		"a number with an underscore":                             {"1b207", "1_11111", false},
		"numbers of 40 digits":                                    {strings.Repeat("1", 40), strings.Repeat("2", 40), false},
		"an id between blanks":                                    {"77", " 77 ", true},
		"different numbers of trailing zeros":                     {"10", "100", false},
	} {
		t.Run(name, func(t *testing.T) {
			ids := ReceiptIDs(tc.receiptID)
			if got := slices.Contains(ids, CanonicalID(tc.responseID)); got != tc.want {
				t.Errorf("%q in %q: %t, want %t", CanonicalID(tc.responseID), ids, got, tc.want)
			}
			if ids[0] != CanonicalID(tc.receiptID) {
				t.Errorf("the first of %q is not the canonical id", ids)
			}
		})
	}
	if ids := ReceiptIDs("  "); ids != nil {
		t.Errorf("the ids of a blank id are %q, want none", ids)
	}
}

func FuzzReceiptIDs(f *testing.F) {
	f.Add("00001A2B")
	f.Add("0")
	f.Add("+1_0")
	f.Add("\x00é")
	f.Fuzz(func(t *testing.T, id string) {
		ids := ReceiptIDs(id)
		if len(ids) > 3 || slices.Contains(ids, "") {
			t.Fatalf("%q: the ids are %q, want at most three and none empty", id, ids)
		}
		for i, candidate := range ids {
			if slices.Index(ids, candidate) != i {
				t.Fatalf("%q: the ids have %q twice", id, candidate)
			}
		}
		if CanonicalID(CanonicalID(id)) != CanonicalID(id) {
			t.Fatalf("%q is not canonical", CanonicalID(id))
		}
	})
}

func TestParseMessageID(t *testing.T) {
	for name, tc := range map[string]struct {
		command Command
		raw, id string
		field   string // of the error
	}{
		"an id":                            {SubmitSM.Answer(), "3161326200", "1a2b", ""},
		"an id with blanks around it":      {SubmitSM.Answer(), "20314120 00", "1A", ""},
		"an empty id":                      {SubmitSM.Answer(), "00", "", ""},
		"no body, as in an error response": {SubmitSM.Answer(), "", "", ""},
		"an id and a parameter":            {DataSM.Answer(), "3100 001D 0001 78", "1", ""},
		"an id without a NUL":              {SubmitSM.Answer(), "3132", "", "message_id"},
		"an id of 65 characters":           {SubmitSM.Answer(), strings.Repeat("31", 65) + "00", "", "message_id"},
		"a response to enquire_link":       {EnquireLink.Answer(), "", "", "command_id"},
		"a submit_sm":                      {SubmitSM, "3100", "", "command_id"},
		"an id of 64 characters":           {SubmitSM.Answer(), strings.Repeat("31", 64) + "00", strings.Repeat("1", 64), ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := fields{command: tc.command, raw: tc.raw}
			raw := f.pdu(t)
			if tc.raw == "" {
				raw = raw[:HeaderLen]
			}
			id, err := ParseMessageID(raw)
			if tc.field != "" {
				e, _ := errors.AsType[*decoders.Error](err)
				if e == nil || e.Field != tc.field {
					t.Errorf("error = %v, want an error in %s", err, tc.field)
				}
				return
			}
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the message id", id, tc.id)
		})
	}
	if _, err := ParseMessageID([]byte{1}); err == nil {
		t.Error("ParseMessageID accepted one octet")
	}
}

func FuzzParseMessageID(f *testing.F) {
	f.Add(fields{command: SubmitSM.Answer(), raw: "313200"}.pdu(f))
	f.Add(fields{command: SubmitSM.Answer(), raw: "31"}.pdu(f))
	f.Fuzz(func(t *testing.T, raw []byte) {
		id, err := ParseMessageID(raw)
		if err == nil && (len(id) >= maxMessageID || strings.Contains(id, "\x00")) {
			t.Errorf("the invalid id %q is accepted", id)
		}
	})
}
