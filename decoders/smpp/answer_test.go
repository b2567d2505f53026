package smpp

import (
	"errors"
	"strings"
	"testing"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestParseMessageID(t *testing.T) {
	for name, tc := range map[string]struct {
		command Command
		raw, id string
		field   string // of the error
	}{
		"an id":                             {SubmitSM.Answer(), "3161326200", "1a2b", ""},
		"an id with blanks around it":       {SubmitSM.Answer(), "20314120 00", "1A", ""},
		"an empty id":                       {SubmitSM.Answer(), "00", "", ""},
		"no body, as in a refusal":          {SubmitSM.Answer(), "", "", ""},
		"an id with a parameter behind":     {DataSM.Answer(), "3100 001D 0001 78", "1", ""},
		"an id without an end":              {SubmitSM.Answer(), "3132", "", "message_id"},
		"an id of 65 characters":            {SubmitSM.Answer(), strings.Repeat("31", 65) + "00", "", "message_id"},
		"an answer to something else":       {EnquireLink.Answer(), "", "", "command_id"},
		"a submit_sm, which is no answer":   {SubmitSM, "3100", "", "command_id"},
		"an id of the 64 characters it has": {SubmitSM.Answer(), strings.Repeat("31", 64) + "00", strings.Repeat("1", 64), ""},
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
					t.Errorf("the error is %v, want one in %s", err, tc.field)
				}
				return
			}
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the message id", id, tc.id)
		})
	}
	if _, err := ParseMessageID([]byte{1}); err == nil {
		t.Error("an octet was taken for an answer")
	}
}

func FuzzParseMessageID(f *testing.F) {
	f.Add(fields{command: SubmitSM.Answer(), raw: "313200"}.pdu(f))
	f.Add(fields{command: SubmitSM.Answer(), raw: "31"}.pdu(f))
	f.Fuzz(func(t *testing.T, raw []byte) {
		id, err := ParseMessageID(raw)
		if err == nil && (len(id) >= maxMessageID || strings.Contains(id, "\x00")) {
			t.Errorf("the id %q was read", id)
		}
	})
}
