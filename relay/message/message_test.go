package message

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestIDs(t *testing.T) {
	for text, want := range map[string]ID{
		"1": 1, "9007199254740991": 1<<53 - 1, "9007199254740992": 0, "0": 0, "-1": 0, "01": 0, "+1": 0, "1.0": 0, "": 0, "x": 0,
	} {
		got, ok := ParseID(text)
		relaytest.Equal(t, fmt.Sprintf("whether %q is an id", text), ok, want != 0)
		if ok {
			relaytest.Equal(t, fmt.Sprintf("the id %q", text), got, want)
		}
	}
}

func TestStatesAndCodes(t *testing.T) {
	for _, s := range States() {
		if got, ok := s.Code().State(); s.Code() != 0 && (got != s || !ok) {
			t.Errorf("state of code %d = %s, want %s", s.Code(), got, s)
		}
		for _, previous := range s.From() {
			if previous.Ended() {
				t.Errorf("%s may follow the final state %s", s, previous)
			}
			if previous == s {
				t.Errorf("%s may follow itself", s)
			}
		}
		if s.Waiting() && s.Ended() {
			t.Errorf("%s is both waiting and final", s)
		}
	}
	for _, c := range []Code{0, 3, 32} {
		if s, ok := c.State(); ok {
			t.Errorf("state of code %d = %s, want none", c, s)
		}
	}
}

func TestCodeOfAMessage(t *testing.T) {
	for _, tc := range []struct {
		name  string
		parts string
		code  Code
		part  int
	}{
		{"one delivered part", "delivered", CodeDelivered, 0},
		{"a pending part is not reported", "pending", 0, 0},
		{"an unknown part is not reported", "unknown accepted", 0, 0},
		{"all parts are accepted", "accepted accepted", CodeAccepted, 1},
		{"one part is not yet accepted", "accepted sending accepted", 0, 1},
		{"one part is delivered, one accepted", "delivered accepted", CodeAccepted, 1},
		{"all parts are delivered", "delivered delivered delivered", CodeDelivered, 2},
		{"one part is buffered", "delivered buffered accepted", CodeBuffered, 1},
		{"one part is undelivered", "delivered undelivered pending", CodeUndelivered, 1},
		{"one part is rejected", "pending rejected", CodeRejected, 1},
		{"one part was removed", "removed delivered", CodeDelivered, 1},
		{"all parts were removed", "removed removed", 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var m Message
			for s := range strings.SplitSeq(tc.parts, " ") {
				m.Parts = append(m.Parts, Part{State: State(s)})
			}
			if code, part := m.Code(); code != tc.code || part != tc.part {
				t.Errorf("code %d of part %d, want code %d of part %d", code, part, tc.code, tc.part)
			}
		})
	}
}

func TestReportURLIsExpanded(t *testing.T) {
	m := Message{ID: 42, Destination: "447700900123"}
	report := DeliveryReport{Code: CodeDelivered, Line: "id:1 stat:DELIVRD text:a&b %code", At: time.Unix(1700000000, 5)}
	for _, tc := range []struct{ name, url, want string }{
		{"every placeholder", "https://h/%msgid?d=%dest&c=%code&r=%dlr&t=%timestamp",
			"https://h/42?d=447700900123&c=1&r=id%3A1%20stat%3ADELIVRD%20text%3Aa%26b%20%25code&t=1700000000"},
		{"no placeholder", "https://h/?a=100%25", "https://h/?a=100%25"},
		{"an unknown placeholder, which earlier versions accepted", "https://h/?a=%status", "https://h/?a=%25status"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m.Report.URL = tc.url
			got, err := m.Expand(report)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the URL", got, tc.want)
		})
	}
	if m.Report.URL = "ftp://h/"; relay.KindOf(func() error { _, err := m.Expand(report); return err }()) != relay.KindInvalid {
		t.Error("an ftp URL was expanded, want kind invalid")
	}
	if (Report{}).Type() != "NONE" || m.Report.Type() != "HTTPGET" {
		t.Errorf("types %q and %q, want NONE and HTTPGET", (Report{}).Type(), m.Report.Type())
	}
}

// FuzzParseID checks that String returns the parsed text.
func FuzzParseID(f *testing.F) {
	f.Add("1")
	f.Add("9007199254740991")
	f.Add("-0")
	f.Fuzz(func(t *testing.T, text string) {
		if id, ok := ParseID(text); ok && (id.String() != text || id < 1 || id >= 1<<53) {
			t.Fatalf("ParseID(%q) = %d, want an id that formats as the text", text, id)
		}
	})
}

func TestInvalidPartRefsAreRefused(t *testing.T) {
	for _, text := range []string{"", "1", "1-2", "1-2-3-4", "1-2-x", "x-2-3", "1-0-0", "1-2-255", "1-2--1", "01-2-3", "1-2-03", "1-2-+3"} {
		if p, ok := ParsePartRef(text); ok {
			t.Errorf("%q was parsed as %s, want an error", text, p.String())
		}
	}
}

func FuzzParsePartRef(f *testing.F) {
	f.Add("7-1001-0")
	f.Add("1--2-3")
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := ParsePartRef(text); ok && p.String() != text {
			t.Errorf("ParsePartRef(%q) formats as %q, want the text", text, p.String())
		}
	})
}
