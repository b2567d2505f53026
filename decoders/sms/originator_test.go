package sms

import "testing"

func TestOriginators(t *testing.T) {
	a := NewAlphabet()
	for text, want := range map[string]bool{
		"447700900123": true, "+447700900123": true, "1": true, "123456789012345": true, "1234567890123456": false, "+1234567890123456": false,
		"Alarm": true, "Kühlraum 1": true, "Elf Zeichen": true, "Zwölf Stück!": false, "": false, "   ": false, "+": true, "日本": false, "a\nb": false, "a\x00": false,
	} {
		if got := a.IsOriginator(text); got != want {
			t.Errorf("IsOriginator(%q) = %t, want %t", text, got, want)
		}
	}
	for text, want := range map[string]string{"+4477": "4477", "4477": "4477", "+": "+", "+a1": "+a1", "Alarm": "Alarm"} {
		if got := NormalizeOriginator(text); got != want {
			t.Errorf("NormalizeOriginator(%q) = %q, want %q", text, got, want)
		}
	}
}
