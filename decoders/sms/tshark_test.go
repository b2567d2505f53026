package sms_test

import (
	"slices"
	"testing"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/decoders/sms/smstest"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestTsharkReadsTheTexts checks that tshark joins the parts of each text and decodes the text.
func TestTsharkReadsTheTexts(t *testing.T) {
	segmenter := sms.New()
	var messages []sms.Message
	var names []string
	for i, tc := range smstest.Texts() {
		if tc.Parts > 20 {
			continue
		}
		m, err := segmenter.Text(tc.Text, sms.Options{Reference: byte(i)})
		relaytest.NoError(t, err)
		messages, names = append(messages, m), append(names, tc.Name)
	}
	for i, d := range smstest.Dissect(t, messages...) {
		var want []string
		for _, p := range messages[i].Parts {
			want = append(want, p.Text)
		}
		if got := d.All("gsm_sms.sms_text"); !slices.Equal(got, want) {
			t.Errorf("%s: tshark reads %q, want %q", names[i], got, want)
		}
	}
}
