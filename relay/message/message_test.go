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
			t.Errorf("%s has the code %d, which is %s", s, s.Code(), got)
		}
		for _, was := range s.From() {
			if was.Ended() {
				t.Errorf("%s comes after %s, an end", s, was)
			}
			if was == s {
				t.Errorf("%s comes after itself", s)
			}
		}
		if s.Waiting() && s.Ended() {
			t.Errorf("%s waits and has ended", s)
		}
	}
	for _, c := range []Code{0, 3, 32} {
		if s, ok := c.State(); ok {
			t.Errorf("%d is %s", c, s)
		}
	}
}

func TestTheCodeOfAMessageWithParts(t *testing.T) {
	for _, tc := range []struct {
		name  string
		parts string
		code  Code
		part  int
	}{
		{"a part alone", "delivered", CodeDelivered, 0},
		{"nothing is reported of what waits", "pending", 0, 0},
		{"nor of what may have been sent", "unknown accepted", 0, 0},
		{"all are accepted", "accepted accepted", CodeAccepted, 1},
		{"one is not yet accepted", "accepted sending accepted", 0, 1},
		{"one is delivered, one accepted", "delivered accepted", CodeAccepted, 1},
		{"all are delivered", "delivered delivered delivered", CodeDelivered, 2},
		{"one waits in the network", "delivered buffered accepted", CodeBuffered, 1},
		{"one was refused by the phone", "delivered undelivered pending", CodeUndelivered, 1},
		{"one was refused by the carrier", "pending rejected", CodeRejected, 1},
		{"one was deleted", "removed delivered", CodeDelivered, 1},
		{"all were deleted", "removed removed", 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var m Message
			for s := range strings.SplitSeq(tc.parts, " ") {
				m.Parts = append(m.Parts, Part{State: State(s)})
			}
			if code, part := m.Code(); code != tc.code || part != tc.part {
				t.Errorf("code %d by part %d, want %d by %d", code, part, tc.code, tc.part)
			}
		})
	}
}

func TestReports(t *testing.T) {
	m := Message{ID: 42, Destination: "447700900123"}
	report := DeliveryReport{Code: CodeDelivered, Line: "id:1 stat:DELIVRD text:a&b %code", At: time.Unix(1700000000, 5)}
	for _, tc := range []struct{ name, url, want string }{
		{"every placeholder", "https://h/%msgid?d=%dest&c=%code&r=%dlr&t=%timestamp",
			"https://h/42?d=447700900123&c=1&r=id%3A1%20stat%3ADELIVRD%20text%3Aa%26b%20%25code&t=1700000000"},
		{"none", "https://h/?a=100%25", "https://h/?a=100%25"},
		{"an unknown one, as earlier versions took it", "https://h/?a=%status", "https://h/?a=%25status"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m.Report.URL = tc.url
			got, err := m.Expand(report)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the URL", got, tc.want)
		})
	}
	if m.Report.URL = "ftp://h/"; relay.KindOf(func() error { _, err := m.Expand(report); return err }()) != relay.KindInvalid {
		t.Error("a URL that is none")
	}
	if (Report{}).Type() != "NONE" || m.Report.Type() != "HTTPGET" {
		t.Error("types")
	}
}

// FuzzParseID holds that what is read is written the same way.
func FuzzParseID(f *testing.F) {
	f.Add("1")
	f.Add("9007199254740991")
	f.Add("-0")
	f.Fuzz(func(t *testing.T, text string) {
		if id, ok := ParseID(text); ok && (id.String() != text || id < 1 || id >= 1<<53) {
			t.Fatalf("%q became %d", text, id)
		}
	})
}

func TestParsePartRefRefuses(t *testing.T) {
	for _, text := range []string{"", "1", "1-2", "1-2-3-4", "1-2-x", "x-2-3", "1-0-0", "1-2-255", "1-2--1", "01-2-3", "1-2-03", "1-2-+3"} {
		if p, ok := ParsePartRef(text); ok {
			t.Errorf("%q was read as %s", text, p.String())
		}
	}
}

func FuzzParsePartRef(f *testing.F) {
	f.Add("7-1001-0")
	f.Add("1--2-3")
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := ParsePartRef(text); ok && p.String() != text {
			t.Errorf("%q became %q", text, p.String())
		}
	})
}
