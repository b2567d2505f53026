package inbound

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestDecideSelectsTheRelay(t *testing.T) {
	ownedBy := func(a relay.AccountID, r Relay) Relay { r.Account = a; return r }
	relays := []Relay{
		geo("short", "44", BlackHole), ownedBy(2, geo("long", "447860", BlackHole)), geo("middle", "4478", BlackHole),
		ownedBy(2, vmn("exact", "447860000001", Inactive)),
	}
	for name, tc := range map[string]struct {
		acct   relay.AccountID
		number string
		want   string
	}{
		"an exact number wins over the longest prefix": {0, "447860000001", "exact"},
		"the longest prefix":                           {0, "447860000002", "long"},
		"a shorter prefix":                             {0, "447812", "middle"},
		"the shortest prefix":                          {0, "441", "short"},
		"a prefix equal to the number":                 {0, "44", "short"},
		"a number shorter than every prefix":           {0, "4", ""},
		"a number without a relay":                     {0, "331234567", ""},
		"the longest prefix of the account":            {1, "447860000001", "middle"},
		"the exact number of the account":              {2, "447860000001", "exact"},
		"an account without relays":                    {3, "447860000001", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := sample()
			m.Account, m.To = tc.acct, tc.number
			var compiled []*CompiledRelay
			for _, r := range relays {
				compiled = append(compiled, Compile(r))
			}
			for range 2 { // in both orders
				d := Decide(m, compiled, Settings{})
				got := ""
				if d.Matched != nil {
					got = d.Matched.ID
				}
				if got != tc.want || (d.State == event.Unrouted) != (tc.want == "") {
					t.Errorf("matched relay = %q, want %q; the message is %s (%s)", got, tc.want, d.State, d.Reason)
				}
				slices.Reverse(compiled)
			}
		})
	}
}

// Earlier versions accepted an unknown placeholder in a query. A stored relay with one still
// works.
func TestAStoredRelayWithAnUnknownPlaceholderWorks(t *testing.T) {
	r := vmn("v", "447860000001", HTTPGet)
	r.Action.Parameters = []string{"https://example.com/?a=%sender&b=%orig"}
	if r.Validate(nil) == nil {
		t.Error("Validate returned no error for an unknown placeholder")
	}
	d := Decide(sample(), []*CompiledRelay{Compile(r)}, Settings{})
	if len(d.Deliveries) != 1 {
		t.Fatalf("%d deliveries, want 1", len(d.Deliveries))
	}
	relaytest.Equal(t, "the URL", d.Deliveries[0].Request.URL, "https://example.com/?a=%25sender&b=447700900123")
}

func TestPostSendsEveryPlaceholderAsAField(t *testing.T) {
	for name, tc := range map[string]struct {
		r    Relay
		want string
	}{
		"geographic": {geo("g1", "44", HTTPPost, "http://h/?i=%i"),
			"message=a%26b%3Dc%2B&originator=447700900123&destination=447860000001&timestamp=2026-07-01%2011%3A00%3A02" +
				"&unix_time=1782903602&udh=&message_id=n1-42"},
		"virtual number": {vmn("v1", "447860000001", HTTPPost, "http://h/?i=%id"),
			"id=n1-42&stat=0&orig=447700900123&dest=447860000001&msg=a%26b%3Dc%2B&time=2026-07-01%2012%3A00%3A02&timeZone=1" +
				"&smsTime=2026-07-01%2011%3A59%3A58&netw=Example%20Mobile&code=7&udh="},
	} {
		t.Run(name, func(t *testing.T) {
			m := sample()
			m.Text = "a&b=c+"
			d := Decide(m, []*CompiledRelay{Compile(tc.r)}, Settings{Zone: london(t)}).Deliveries[0]
			relaytest.Equal(t, "the body", string(d.Request.Body), tc.want)
			relaytest.Equal(t, "method, URL and content type", []string{d.Request.Method, d.Request.URL, d.Request.ContentType},
				[]string{"POST", "http://h/?i=n1-42", "application/x-www-form-urlencoded"})
			if q, err := url.ParseQuery(string(d.Request.Body)); err != nil || !slices.Contains([]string{q.Get("msg"), q.Get("message")}, m.Text) {
				t.Errorf("decoded body = %v, error = %v, want the text", q, err)
			}
		})
	}
}

func TestEmail(t *testing.T) {
	for name, tc := range map[string]struct{ sender, subject string }{
		"a number":                         {"447700900123", "SMS from 447700900123 to 447860000001"},
		"a name":                           {"Bank of Ä", "SMS from Bank of Ä to 447860000001"},
		"line breaks":                      {"x\r\nBcc: evil@example.com", "SMS from xBcc: evil@example.com to 447860000001"},
		"control and invisible characters": {"a\x00\u202Eb\u2028c\x7f", "SMS from abc to 447860000001"},
		"invalid UTF-8":                    {"a\xffb", "SMS from ab to 447860000001"},
		"a very long name":                 {strings.Repeat("ß", 500), "SMS from " + strings.Repeat("ß", 64) + "… to 447860000001"},
		"no visible character":             {"\r\n", "SMS from  to 447860000001"},
	} {
		t.Run(name, func(t *testing.T) {
			m := sample()
			m.From, m.Text = tc.sender, "first\r\nsecond"
			ds := Decide(m, []*CompiledRelay{Compile(geo("g1", "44", Email, "a@example.com", "b@example.com"))}, Settings{MailDomain: "gw.example"}).Deliveries
			if len(ds) != 2 || ds[0].ID == ds[1].ID {
				t.Fatalf("got %d deliveries, want 2 with different ids", len(ds))
			}
			mail := ds[1].Mail
			relaytest.Equal(t, "subject, address, text and message id", []string{mail.Subject, mail.To, mail.Text, mail.MessageID},
				[]string{tc.subject, "b@example.com", m.Text, ds[1].ID + "@gw.example"})
		})
	}
}

func FuzzOneLine(f *testing.F) {
	f.Add("a\r\nb")
	f.Add(strings.Repeat("é\u202e", 80))
	f.Fuzz(func(t *testing.T, s string) {
		got := oneLine(s, maxInSubject)
		if len([]rune(got)) > maxInSubject+1 || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("oneLine(%q) = %q", s, got)
		}
	})
}

func TestDeliveryIDs(t *testing.T) {
	firstIDs := deliveryIDs(t, sample(), geo("g1", "44", HTTPGet, "http://a/", "http://a/", "http://b/"))
	secondIDs := deliveryIDs(t, sample(), geo("g1", "44", HTTPGet, "http://a/", "http://a/", "http://c/"))
	if firstIDs[0] == firstIDs[1] {
		t.Error("two equal parameters have the same delivery id")
	}
	if firstIDs[0] != secondIDs[0] || firstIDs[1] != secondIDs[1] {
		t.Error("the ids of the same message and parameter differ")
	}
	if firstIDs[2] == secondIDs[2] {
		t.Error("a corrected parameter has the old id: a replay would send nothing")
	}
	otherMessage := sample()
	otherMessage.ID = "n1-43"
	if deliveryIDs(t, otherMessage, geo("g1", "44", HTTPGet, "http://a/"))[0] == firstIDs[0] {
		t.Error("another message has the same id")
	}
	if strings.ContainsAny(strings.Join(firstIDs, ""), "{}:") {
		t.Errorf("ids = %v, want no braces and colons", firstIDs)
	}
}

// deliveryIDs returns the ids of the deliveries of a message to a relay.
func deliveryIDs(t *testing.T, m *Message, r Relay) (ids []string) {
	t.Helper()
	for _, d := range Decide(m, []*CompiledRelay{Compile(r)}, Settings{}).Deliveries {
		ids = append(ids, d.ID)
	}
	return ids
}

func TestStatOf(t *testing.T) {
	for name, tc := range map[string]struct {
		udh  string
		want Stat
	}{
		"no UDH":                     {"", Normal},
		"ports":                      {"\x06\x05\x04\x0b\x84\x23\xf0", Normal},
		"a part by 8-bit reference":  {"\x05\x00\x03\xcc\x02\x01", Concatenated},
		"a part by 16-bit reference": {"\x06\x08\x04\xab\xcd\x03\x02", Concatenated},
		"a truncated UDH":            {"\x05\x00\x03", Indecipherable},
	} {
		if got := StatOf([]byte(tc.udh)); got != tc.want {
			t.Errorf("%s: status = %d, want %d", name, got, tc.want)
		}
	}
}

// A shorter prefix must not take the messages of a relay that cannot be decrypted.
func TestAnUndecryptableRelayQuarantinesItsMessages(t *testing.T) {
	undecryptable := Relay{ID: "v", Kind: VirtualNumber, Number: "447860000001", Undecryptable: true}
	m := sample()
	m.To = undecryptable.Number
	d := Decide(m, []*CompiledRelay{Compile(undecryptable), Compile(geo("g", "44", BlackHole))}, Settings{})
	relaytest.Equal(t, "the state", d.State, event.Quarantined)
	if want := "the virtual number relay v cannot be used: " + relay.ErrUndecryptable.Error() + ", then replay the message"; d.Reason != want {
		t.Errorf("reason = %q, want %q", d.Reason, want)
	}
}
