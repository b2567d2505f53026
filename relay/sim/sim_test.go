package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestParseICCID(t *testing.T) {
	for text, ok := range map[string]bool{
		"894400000000000000": true, "8944000000000000000001": true, "89440000000000000": false, "89440000000000000000012": false,
		"89440000000000000x": false, "": false, "+94400000000000000000": false, "８９４４００": false,
	} {
		got, err := ParseICCID(text)
		if ok {
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the ICCID", got.String(), text)
		} else if relay.KindOf(err) != relay.KindInvalid {
			t.Errorf("ParseICCID(%q) = %q, error %v; want kind invalid", text, got, err)
		}
	}
}

func FuzzParseICCID(f *testing.F) {
	for _, seed := range []string{"8944000000000000001", "", "894400000000000000１", "89440000000000000000000000"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseICCID(text)
		if err == nil && (string(got) != text || len(text) < 18 || len(text) > 22 || strings.Trim(text, "0123456789") != "") {
			t.Errorf("ParseICCID(%q) returned no error", text)
		}
	})
}

func TestCodesAreNotPrinted(t *testing.T) {
	s := SIM{ICCID: "8944000000000000001", Codes: Codes{PIN: "4711", PUK: "12345678"}}
	for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(form, s); strings.Contains(text, "4711") || strings.Contains(text, "12345678") {
			t.Errorf("format %s prints codes: %s", form, text)
		}
	}
}

func TestDeclared(t *testing.T) {
	existing := SIM{
		ICCID: "8944000000000000001", IMSI: "1", MSISDN: "2", Codes: Codes{PIN: "1111", PUK2: "2222"}, State: Active, RequestedState: Suspended,
		Job: "j", Subscriber: "s", Pool: "p", Service5G: true, Limit: Limit{Monthly: 5, Action: Block}, Recipients: []Recipient{{ID: "r"}},
	}
	declaration := SIM{ICCID: existing.ICCID, MSISDN: "3", Codes: Codes{PIN: "9999"}, State: Pending, Service4G: true}
	updated := existing
	updated.MSISDN, updated.Codes = "3", Codes{PIN: "9999", PUK2: "2222"}
	reset := updated
	reset.State, reset.RequestedState, reset.Job, reset.Subscriber, reset.Service4G, reset.Service5G = Pending, Pending, "", "", true, false
	fresh := declaration
	fresh.RequestedState, fresh.Limit.Action = Pending, NoAction
	for _, tc := range []struct {
		name  string
		old   SIM
		reset bool
		want  SIM
	}{
		{"a new SIM has the declared values", SIM{}, false, fresh},
		{"an existing SIM keeps its state", existing, false, updated},
		{"a reset SIM has the declared state", existing, true, reset},
	} {
		relaytest.Equal(t, tc.name, ApplyDeclaration(tc.old, declaration, tc.reset), tc.want)
	}
}

func TestEmails(t *testing.T) {
	for text, want := range map[string]bool{
		"a@example.com": true, "a.b+c@mail.example.co.uk": true, "a@localhost": false, "a": false, "@example.com": false, "a@": false,
		"A <a@example.com>": false, "a@example.com, b@example.com": false, "a@example.com\r\nBcc: b@example.com": false,
		"a b@example.com": false, "a@example.com.": false, "": false, strings.Repeat("a", 250) + "@example.com": false,
	} {
		if got := IsEmail(text); got != want {
			t.Errorf("IsEmail(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestFilters(t *testing.T) {
	for _, tc := range []struct {
		operator, value string
		want            Filter
		invalidPart     string
	}{
		{"", "5", Filter{"c", Equals, "5"}, ""},
		{"=", "%", Filter{"c", Equals, "%"}, ""},
		{"!=", "5", Filter{"c", NotEquals, "5"}, ""},
		{"starts_with", "5%", Filter{"c", StartsWith, "5%"}, ""},
		{"like", "89%", Filter{"c", StartsWith, "89"}, ""},
		{"like", "89", Filter{"c", Equals, "89"}, ""},
		{"like", "%", Filter{"c", StartsWith, ""}, ""},
		{"like", "%89%", Filter{}, "value"},
		{"like", "8_9", Filter{}, "value"},
		{"=", "", Filter{"c", Equals, ""}, ""},
		{"", "", Filter{"c", Equals, ""}, ""},
		{"!=", "", Filter{"c", NotEquals, ""}, ""},
		{">", "", Filter{}, "operator"},
		{"=", "a\x1fb", Filter{}, "value"},
		{"=", "\xff", Filter{}, "value"},
		{"=", strings.Repeat("x", 256), Filter{}, "value"},
		{">", "5", Filter{}, "operator"},
		{"LIKE", "5", Filter{}, "operator"},
	} {
		got, part, reason := ParseFilter("c", tc.operator, tc.value)
		label := fmt.Sprintf("%q %q: ", tc.operator, tc.value)
		relaytest.Equal(t, label+"the invalid part", part, tc.invalidPart)
		relaytest.Equal(t, label+"whether there is a reason", reason != "", part != "")
		if part == "" {
			relaytest.Equal(t, label+"the filter", got, tc.want)
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	for _, seed := range [][2]string{{"like", "8944%"}, {"=", "a"}, {"starts_with", "%"}, {"!=", "\x00"}, {"", ""}} {
		f.Add(seed[0], seed[1], "8944000000000000001")
	}
	f.Fuzz(func(t *testing.T, operator, value, text string) {
		got, part, reason := ParseFilter("c", operator, value)
		if (part == "") != (reason == "") {
			t.Errorf("invalid part = %q with reason %q, want both or neither", part, reason)
		}
		if part != "" {
			return
		}
		if strings.ContainsAny(got.Value, "\x00\x1f") {
			t.Errorf("the value %q has control characters", got.Value)
		}
		if got.Match == StartsWith && got.Holds(text) != strings.HasPrefix(text, got.Value) {
			t.Errorf("Begins filter %q holds for %q: %v", got.Value, text, got.Holds(text))
		}
	})
}

func TestOrderColumnOfAQuery(t *testing.T) {
	for name, tc := range map[string]struct {
		query Query
		want  int
	}{
		"default":                   {Query{}, 0},
		"requested column":          {Query{OrderBy: "msisdn", Filters: []Filter{{"imsi", StartsWith, "2"}}}, 2},
		"column of a prefix filter": {Query{Filters: []Filter{{"iccid", NotEquals, "2"}, {"imsi", StartsWith, "2"}}}, 1},
	} {
		if got := tc.query.Order(Columns()); got != tc.want {
			t.Errorf("%s: order = %d, want %d", name, got, tc.want)
		}
	}
}

func TestCallbackURLs(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.com/a?b=c": "", "https://[2001:db8::1]:8443/": "", "http://example.com/": "begin with https", "ftp://example.com/": "begin with https",
		"": "required", "https://": "valid URL", "https://a b/": "valid URL", "https://example.com/\n": "valid URL", "https://example.com/#x": "valid URL",
		"example.com": "valid URL", "https://example.com/" + strings.Repeat("x", maxURL): "valid URL", "https://%zz/": "valid URL",
	} {
		err := checkCallback(url, false)
		text := fmt.Sprint(relay.FieldsOf(err)["callback_url"])
		if want == "" && err != nil || !strings.Contains(text, want) {
			t.Errorf("callback URL %.60q: error %s, want %q", url, text, want)
		}
	}
	if err := checkCallback("http://127.0.0.1:8080/", true); err != nil {
		t.Errorf("http is refused although it is allowed: %v", err)
	}
}
