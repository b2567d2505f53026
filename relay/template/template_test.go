package template

import (
	"net/url"
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	values := map[string]string{"d": "4477", "dest": "a/b?c", "dots": ".."}
	for name, tc := range map[string]struct{ raw, want string }{
		"the longest name first":                      {"https://h/?x=%dest&y=%d", "https://h/?x=a%2Fb%3Fc&y=4477"},
		"a value stays in its place in a path":        {"https://h/%dest/z", "https://h/a%2Fb%3Fc/z"},
		"a step up is none":                           {"https://h/%dots/z", "https://h/%2E%2E/z"},
		"an escape stays, a bare percent is made one": {"https://h/?x=%25&y=%zz", "https://h/?x=%25&y=%25zz"},
		"nothing to replace":                          {"https://h", "https://h"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Compile(tc.raw, []string{"d", "dest", "dots"})
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Expand(func(name string) string { return values[name] }); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
	for _, bad := range []string{"", "h/x", "ftp://h/", "https://%d/", "https://h/#x", "https://h/%zz", "https:///x", "https://h/\n"} {
		if c, err := Compile(bad, []string{"d"}); err == nil {
			t.Errorf("%q became %s", bad, c.Sample())
		}
	}
}

// FuzzCompile holds that a value never leads elsewhere: host and user are those
// of the template, and the result is a URL.
func FuzzCompile(f *testing.F) {
	f.Add("https://u:p@h:1/%d/a?b=%dest#", "../?&#\r\n")
	f.Add("http://h/%25%d0", "\x00é")
	f.Fuzz(func(t *testing.T, raw, value string) {
		c, err := Compile(raw, []string{"d", "dest"})
		if err != nil {
			return
		}
		out := c.Expand(func(string) string { return value })
		u, err := url.Parse(out)
		if err != nil {
			t.Fatalf("%q gave %q: %v", raw, out, err)
		}
		base, err := url.Parse(c.Sample())
		if err != nil || u.Scheme != base.Scheme || u.Host != base.Host || u.User.String() != base.User.String() || u.Fragment != "" || strings.ContainsAny(out, "\r\n \x00") {
			t.Fatalf("%q gave %q, which leads elsewhere", raw, out)
		}
	})
}
