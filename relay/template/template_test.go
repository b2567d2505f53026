package template

import (
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestExpand(t *testing.T) {
	values := map[string]string{"d": "4477", "dest": "a/b?c", "dots": ".."}
	for name, tc := range map[string]struct{ raw, want string }{
		"the longest name first":                               {"https://h/?x=%dest&y=%d", "https://h/?x=a%2Fb%3Fc&y=4477"},
		"a slash in a value of the path is escaped":            {"https://h/%dest/z", "https://h/a%2Fb%3Fc/z"},
		"dots in the path are escaped":                         {"https://h/%dots/z", "https://h/%2E%2E/z"},
		"an escape is kept and a bare percent sign is escaped": {"https://h/?x=%25&y=%zz", "https://h/?x=%25&y=%25zz"},
		"no placeholder":                                       {"https://h", "https://h"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Compile(tc.raw, []string{"d", "dest", "dots"})
			relaytest.NoError(t, err)
			if got := c.Expand(func(name string) string { return values[name] }); got != tc.want {
				t.Errorf("URL %s, want %s", got, tc.want)
			}
		})
	}
	for _, escaped := range []string{"https://us%40er:p%3Aw@h/?x=%d", "https://us%d0er:%D0@h/"} {
		_, err := Compile(escaped, []string{"d", "dest"})
		relaytest.NoError(t, err)
	}
	for _, invalid := range []string{"", "h/x", "ftp://h/", "https://%d/", "https://h/#x", "https://h/%zz", "https:///x", "https://h/\n"} {
		if c, err := Compile(invalid, []string{"d"}); err == nil {
			t.Errorf("Compile(%q) returned no error; its sample is %s", invalid, c.Sample())
		}
	}
}

// URLs that Check refuses still compile, because they may have been saved before Check existed.
func TestUnknownPlaceholdersInTheQuery(t *testing.T) {
	for raw, unknown := range map[string]string{
		"https://h/?x=%zz":           "%zz",
		"https://h/?x=%dest&y=%from": "%from",
		"https://h/?x=%sender_1.y":   "%sender_1",
		"https://h/?x=%account":      "%account", // not the octet 0xAC
		"https://h/?x=%Body":         "%Body",
		"https://h/?%%who":           "%who",
		"https://h/?x=%date":         "%date", // not %d and ate
		"https://h/?x=%destX":        "%destX",
		"https://h/%date/y":          "%date",
		"https://h/?x=%de%b0":        "%de",
		"https://h/?x=%d0%d_%dest-a": "",
		"https://h/?x=%25zz":         "",
		"https://h/?x=100%":          "",
		"https://h/?x=50%&y=%d":      "",
		"https://h/?x=%+1":           "",
		"https://h/?x=caf%e9s":       "",
		"https://h/?x=%c3%adx":       "",
		"https://h/?x=%ACcount":      "",
		"https://h/?x=%ac":           "",
		"https://h/%20a":             "",
	} {
		c, err := Compile(raw, []string{"d", "dest"})
		if err != nil {
			t.Fatalf("Compile(%s): %v", raw, err)
		}
		err = c.Check()
		if unknown == "" && err != nil {
			t.Errorf("Check of %s: %v, want no error", raw, err)
		}
		want := strconv.Quote(unknown) + " is not a placeholder here; the placeholders are %d, %dest, and %25 for a percent sign"
		if unknown != "" && (err == nil || err.Error() != want) {
			t.Errorf("Check of %s: %v, want %s", raw, err, want)
		}
	}
}

func TestKeysInPlaceholders(t *testing.T) {
	value := func(name string) string { return "<" + name + ">" }
	names := []string{"key:", "key", "rule"}
	for raw, want := range map[string]string{
		"https://h/%key:temperature/x?a=%key:air.hum-1_b&c=%key:1": "https://h/%3Ckey%3Atemperature%3E/x?a=%3Ckey%3Aair.hum-1_b%3E&c=%3Ckey%3A1%3E",
		"https://h/?x=%key:temp.&y=%rule":                          "https://h/?x=%3Ckey%3Atemp%3E.&y=%3Crule%3E",
		"https://h/?x=%key:&y=%key_note":                           "https://h/?x=%3Ckey%3E:&y=%3Ckey%3E_note",
		"https://h/?x=%key:größe":                                  "https://h/?x=%3Ckey%3Agr%C3%B6%C3%9Fe%3E",
	} {
		c, err := Compile(raw, names)
		relaytest.NoError(t, err)
		if got := c.Expand(value); got != want || c.Check() != nil {
			t.Errorf("%s: %s, want %s, %v", raw, got, want, c.Check())
		}
	}
	for _, raw := range []string{"https://h/%key:/", "https://h/?x=%key:.", "https://h/?x=%keys"} {
		c, err := Compile(raw, []string{"key:"})
		if err == nil {
			err = c.Check()
		}
		if err == nil || !strings.HasSuffix(err.Error(), "the placeholders are %key:NAME, and %25 for a percent sign") {
			t.Errorf("%s: %v, want the known placeholders", raw, err)
		}
	}
}

func TestExpandText(t *testing.T) {
	value := func(name string) string { return "<" + name + "%rule>" } // the percent sign in a value is literal
	for text, want := range map[string]string{
		"%rule: %key:temp.c, 100% %":         "<rule%rule>: <key:temp.c%rule>, 100% %",
		"it is %key:temperature.":            "it is <key:temperature%rule>.",
		"%%rule%key:%":                       "%<rule%rule>%key:%",
		"nothing":                            "nothing",
		"%key:a-%key:b--%key:ü\xff%key:\xff": "<key:a%rule>-<key:b%rule>--<key:ü%rule>\xff%key:\xff",
	} {
		if got := ExpandText(text, []string{"key:", "rule"}, value); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// FuzzExpandText checks that only placeholders are replaced and that a text without percent signs is
// unchanged.
func FuzzExpandText(f *testing.F) {
	f.Add("%rule is %key:a.b. 100%", "v")
	f.Fuzz(func(t *testing.T, text, value string) {
		n := 0
		expanded := ExpandText(text, []string{"key:", "rule"}, func(name string) string {
			n++
			if !strings.Contains(text, "%"+name) {
				t.Fatalf("the text %q has no placeholder %q", text, name)
			}
			return value
		})
		if n == 0 && expanded != text || n > strings.Count(text, "%") {
			t.Fatalf("%q: %d placeholders replaced, result %q", text, n, expanded)
		}
	})
}

// FuzzCompile checks that a value does not change the host or the user of a URL and that the result is
// a URL.
func FuzzCompile(f *testing.F) {
	f.Add("https://u:p@h:1/%d/a?b=%dest#", "../?&#\r\n")
	f.Add("http://h/%25%d0", "\x00é")
	f.Add("http://h/%key:é.b/?%key:", "..")
	f.Fuzz(func(t *testing.T, raw, value string) {
		c, err := Compile(raw, []string{"d", "dest", "key:"})
		if err != nil {
			return
		}
		expanded := c.Expand(func(string) string { return value })
		relaytest.SameOrigin(t, expanded, c.Sample())
		if strings.ContainsAny(expanded, "\r\n \x00") {
			t.Errorf("the URL %q has unescaped characters", expanded)
		}
	})
}
