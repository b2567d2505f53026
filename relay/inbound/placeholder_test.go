package inbound

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay/relaytest"
)

func sample() *Message {
	return &Message{
		ID: "n1-42", Carrier: "json", CarrierID: "c-7", From: "447700900123", To: "447860000001",
		Text: "héllo & bye", Coding: sms.GSM,
		SentAt:     time.Date(2026, 7, 1, 10, 59, 58, 0, time.UTC),
		ReceivedAt: time.Date(2026, 7, 1, 11, 0, 2, 0, time.UTC),
		Network:    "Example Mobile", Reference: "smsc-1",
	}
}

func london(t testing.TB) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/London")
	relaytest.NoError(t, err)
	return zone
}

func expand(t testing.TB, k Kind, raw string, m *Message) string {
	t.Helper()
	c, err := CompileURL(k, raw)
	if err != nil {
		t.Fatalf("compile %s: %v", raw, err)
	}
	return c.expand(view{m, london(t)})
}

func TestPlaceholders(t *testing.T) {
	change := func(f func(*Message)) *Message { m := sample(); f(m); return m }
	for name, tc := range map[string]struct {
		kind Kind
		url  string
		m    *Message
		want string
	}{
		"every placeholder of a geographic relay": {Geographic, "http://h/?m=%m&o=%o&d=%d&t=%t&x=%x&u=%u&i=%i", sample(),
			"http://h/?m=h%C3%A9llo%20%26%20bye&o=447700900123&d=447860000001&t=2026-07-01%2011%3A00%3A02&x=1782903602&u=&i=n1-42"},
		"every placeholder of a virtual number, in summer": {VirtualNumber,
			"http://h/?a=%id&b=%stat&c=%orig&d=%dest&e=%msg&f=%time&g=%timeZone&h=%smsTime&i=%netw&j=%code&k=%udh", sample(),
			"http://h/?a=n1-42&b=0&c=447700900123&d=447860000001&e=h%C3%A9llo%20%26%20bye&f=2026-07-01%2012%3A00%3A02" +
				"&g=1&h=2026-07-01%2011%3A59%3A58&i=Example%20Mobile&j=7&k="},
		"a message with placeholders is not expanded again": {VirtualNumber, "http://h/?a=%msg&b=%orig",
			change(func(m *Message) { m.Text = "%orig %msg %25 %" }), "http://h/?a=%25orig%20%25msg%20%2525%20%25&b=447700900123"},
		"the longest name matches":                   {VirtualNumber, "http://h/?%timeZone%time", sample(), "http://h/?12026-07-01%2012%3A00%3A02"},
		"a percent sign before a placeholder":        {Geographic, "http://h/?a=%25m&b=%%m", change(func(m *Message) { m.Text = "x" }), "http://h/?a=%25m&b=%25x"},
		"an escape that is not a placeholder":        {Geographic, "http://h/a%20b?c=%E2%82%AC", sample(), "http://h/a%20b?c=%E2%82%AC"},
		"%d0 is the destination, %D0 an escape":      {Geographic, "http://h/?a=%d0%D0%B0", sample(), "http://h/?a=4478600000010%D0%B0"},
		"%dest is not %de and st":                    {VirtualNumber, "http://h/?a=%dest", sample(), "http://h/?a=447860000001"},
		"names of the other kind are escaped":        {Geographic, "http://h/?a=%netw", sample(), "http://h/?a=%25netw"},
		"names are case-sensitive":                   {VirtualNumber, "http://h/?a=%Msg&b=%MSG", sample(), "http://h/?a=%25Msg&b=%25MSG"},
		"a percent sign at the end":                  {Geographic, "http://h/?a=100%", sample(), "http://h/?a=100%25"},
		"a placeholder in the path":                  {Geographic, "http://h/in/%o/%m", change(func(m *Message) { m.Text = "a/b?c#d" }), "http://h/in/447700900123/a%2Fb%3Fc%23d"},
		"dots in a path are escaped":                 {Geographic, "http://h/in/%m/x", change(func(m *Message) { m.Text = ".." }), "http://h/in/%2E%2E/x"},
		"dots in a query are unchanged":              {Geographic, "http://h/?m=%m", change(func(m *Message) { m.Text = ".." }), "http://h/?m=.."},
		"a question mark in the query":               {Geographic, "http://h/?a=?%m", change(func(m *Message) { m.Text = "&" }), "http://h/?a=?%26"},
		"no path":                                    {Geographic, "https://h?m=%m", change(func(m *Message) { m.Text = "x" }), "https://h?m=x"},
		"the same name twice":                        {Geographic, "http://h/?a=%o&b=%o", change(func(m *Message) { m.From = "E3" }), "http://h/?a=E3&b=E3"},
		"literal spaces and umlauts":                 {Geographic, "http://h/ä b?q=ü x", sample(), "http://h/%C3%A4%20b?q=%C3%BC%20x"},
		"user, port and address are unchanged":       {Geographic, "http://u:p%40w@[2001:db8::1]:8080/?i=%i", sample(), "http://u:p%40w@[2001:db8::1]:8080/?i=n1-42"},
		"line ends in a value":                       {Geographic, "http://h/?m=%m", change(func(m *Message) { m.Text = "a\r\nb\x00" }), "http://h/?m=a%0D%0Ab%00"},
		"a binary message is hex":                    {VirtualNumber, "http://h/?m=%msg&c=%code&u=%udh&s=%stat", change(makeBinary), "http://h/?m=00ff10&c=8&u=0605040b8423f0&s=0"},
		"no network, the carrier's reference":        {VirtualNumber, "http://h/?n=%netw", change(func(m *Message) { m.Network = "" }), "http://h/?n=smsc-1"},
		"no time of sending, the time of receipt":    {VirtualNumber, "http://h/?n=%smsTime", change(func(m *Message) { m.SentAt = time.Time{} }), "http://h/?n=2026-07-01%2012%3A00%3A02"},
		"London in winter":                           {VirtualNumber, "http://h/?z=%timeZone&t=%time", change(winter), "http://h/?z=0&t=2026-12-01%2011%3A00%3A00"},
		"a concatenated part":                        {VirtualNumber, "http://h/?s=%stat", change(func(m *Message) { m.Stat = Concatenated }), "http://h/?s=1"},
		"an invalid UDH":                             {VirtualNumber, "http://h/?s=%stat", change(func(m *Message) { m.Stat = Indecipherable }), "http://h/?s=2"},
		"%t is UTC in any zone":                      {Geographic, "http://h/?t=%t", sample(), "http://h/?t=2026-07-01%2011%3A00%3A02"},
		"a scheme in capitals and nothing to expand": {Geographic, "HTTPS://h/x", sample(), "HTTPS://h/x"},
	} {
		t.Run(name, func(t *testing.T) {
			relaytest.Equal(t, "the URL", expand(t, tc.kind, tc.url, tc.m), tc.want)
		})
	}
}

func makeBinary(m *Message) {
	m.Text, m.Data, m.UDH, m.Coding = "", []byte{0, 255, 16}, []byte{6, 5, 4, 0x0b, 0x84, 0x23, 0xf0}, sms.Binary
}

func winter(m *Message) { m.ReceivedAt = time.Date(2026, 12, 1, 11, 0, 0, 0, time.UTC) }

func TestInvalidURLsAreRefused(t *testing.T) {
	for name, raw := range map[string]string{
		"an empty URL":                     "",
		"no scheme":                        "example.com/?m=%m",
		"another scheme":                   "ftp://h/?m=%m",
		"no host":                          "http:///x",
		"only a port":                      "http://:80/x",
		"a placeholder in the scheme":      "%m://h/",
		"a placeholder in the host":        "http://%m.example.com/",
		"a placeholder in the port":        "http://h:%x/",
		"a placeholder in the user":        "http://%o:p@h/",
		"a fragment":                       "http://h/?m=%m#x",
		"a placeholder in the fragment":    "http://h/#%m",
		"a bare percent sign in the path":  "http://h/100%/x",
		"an unfinished escape in the path": "http://h/%4",
		"a line end":                       "http://h/\r\nX: y",
		"a NUL":                            "http://h/?\x00",
		"a space in the host":              "http://h h/",
		"a port that is not a number":      "http://h:x/",
	} {
		t.Run(name, func(t *testing.T) {
			if c, err := CompileURL(Geographic, raw); err == nil {
				t.Errorf("CompileURL returned %s, want an error", c.Sample())
			}
		})
	}
}

func TestPlaceholdersOfTheOtherKindAreRefused(t *testing.T) {
	for raw, k := range map[string]Kind{
		"http://h/?text=%msg&from=%orig": Geographic, "http://h/%dest/x": Geographic, "http://h/?a=%m": VirtualNumber, "http://h/?a=%msgs": VirtualNumber,
	} {
		if err := CheckEndpoint(string(k), raw); err == nil || !strings.Contains(err.Error(), "is not a placeholder here; the placeholders are %") {
			t.Errorf("error for %s = %v, want an unknown placeholder", raw, err)
		}
	}
}

// expandDecoded expands a decoded URL with one regular expression, which tries long names first.
func expandDecoded(k Kind, raw string, v view) string {
	values := make(map[string]string)
	var names []string
	for _, p := range placeholders(k) {
		values[p.name] = p.value(v)
		names = append(names, p.name)
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	token := regexp.MustCompile("%(" + strings.Join(names, "|") + "|[0-9a-fA-F]{2})")
	return token.ReplaceAllStringFunc(raw, func(s string) string {
		if value, ok := values[s[1:]]; ok {
			return value
		}
		decoded, err := url.PathUnescape(s)
		if err != nil {
			panic(err)
		}
		return decoded
	})
}

func FuzzCompileURL(f *testing.F) {
	f.Add("http://h/p?m=%m&o=%o", "hi", "447700900123", true)
	f.Add("http://h/%msg/%timeZone?x=%time%orig%", "%orig & ..", "E3", false)
	f.Add("http://h/%m", "..", "a\r\nb", true)
	f.Add("http://h/a b?%%25m%d0%D0", "\x00\xff+;#", "+44", true)
	zone := london(f)
	f.Fuzz(func(t *testing.T, raw, text, sender string, geo bool) {
		kind := VirtualNumber
		if geo {
			kind = Geographic
		}
		c, err := CompileURL(kind, raw)
		if err != nil {
			return
		}
		m := sample()
		m.Text, m.From = text, sender
		v := view{m, zone}
		expanded := c.expand(v)
		u := relaytest.SameOrigin(t, expanded, c.Sample())
		pathStart := strings.Index(raw, "://") + len("://")
		if i := strings.IndexAny(raw[pathStart:], "/?#"); i >= 0 {
			pathStart += i
		} else {
			pathStart = len(raw)
		}
		rawPath, rawQuery, _ := strings.Cut(raw[pathStart:], "?")
		if want := expandDecoded(kind, rawPath, v); u.Path != want {
			t.Fatalf("path of %q = %q, want %q", raw, u.Path, want)
		}
		query, err := url.PathUnescape(u.RawQuery)
		if want := expandDecoded(kind, rawQuery, v); err != nil || query != want {
			t.Fatalf("query of %q = %q, error = %v, want %q", raw, query, err, want)
		}
		if strings.Count(u.RawQuery, "&") != strings.Count(rawQuery, "&") || strings.ContainsAny(expanded, "\r\n \x00") {
			t.Fatalf("%q was expanded to %q: a value left its place", raw, expanded)
		}
	})
}

func BenchmarkExpand(b *testing.B) {
	c, err := CompileURL(VirtualNumber, "http://127.0.0.1:9999/in?id=%id&from=%orig&to=%dest&text=%msg&at=%time&code=%code")
	if err != nil {
		b.Fatal(err)
	}
	v := view{sample(), london(b)}
	b.ReportAllocs()
	for b.Loop() {
		_ = c.expand(v)
	}
}
