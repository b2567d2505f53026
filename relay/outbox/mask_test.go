package outbox

import (
	"strings"
	"testing"
)

func TestTargetsAreShownWithoutTheirSecrets(t *testing.T) {
	for _, tc := range []struct{ name, give, want string }{
		{"values of the query, in their order", "https://h/p?z=1&a=2&z=3", "https://h/p?z=***&a=***&z=***"},
		{"a password", "https://user:pass@h:8080/p", "https://user:***@h:8080/p"},
		{"a password with signs of its own", "https://user:p@ss:w@h/p", "https://user:***@h/p"},
		{"a user alone", "https://user@h", "https://user@h"},
		{"a value alone", "https://h/?token", "https://h/?***"},
		{"an empty query", "https://h/?", "https://h/?"},
		{"a fragment", "https://h/#token", "https://h/#***"},
		{"a question in the fragment", "https://h/#a?b=c", "https://h/#***"},
		{"an at sign in the path", "https://h/a@b:c", "https://h/a@b:c"},
		{"a URL that does not parse", "https://h/%zz?key=secret", "https://h/%zz?key=***"},
		{"a blank and a quote", "http://h/a b?k=\"x y\"", "http://h/a b?k=***"},
		{"an address", "a+b@example.com", "a+b@example.com"},
		{"nothing", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := MaskTarget(tc.give); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzMaskTarget(f *testing.F) {
	f.Add("https://user:pass@h/p", "k", "secret-value")
	f.Fuzz(func(t *testing.T, before, name, value string) {
		if strings.ContainsAny(name+value, "&=?#") || strings.Contains(before, value) || strings.Contains(name, value) || len(value) < 4 || strings.Contains("https://h/?***=", value) {
			t.Skip("the value would stand elsewhere in the URL")
		}
		got := MaskTarget("https://h/?" + name + "=" + value)
		if strings.Contains(got, value) || !strings.Contains(got, name) {
			t.Fatal(got)
		}
		_ = MaskTarget(before)
	})
}

func TestSearchesFindTextsAndNoSecrets(t *testing.T) {
	for target, want := range map[string]string{
		"https://me:secret@example.com/in?m=Gate+open&API_Key=k1&access_token=k2&k3#k4": "https://example.com?m=Gate+open&API_Key=***&access_token=***&***",
		"https://hooks.example.com:8443/services/T0/B1/secret":                          "https://hooks.example.com:8443",
		"https://user@h/a@b:c": "https://h",
		"ops@example.com":      "ops@example.com",
	} {
		if got := SearchableTarget(target); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPathsAreHidden(t *testing.T) {
	for _, tc := range []struct{ name, give, want string }{
		{"a path and a query", "https://example.com/a?b", "https://example.com/…"},
		{"a query without a path", "https://example.com?b", "https://example.com/…"},
		{"a fragment", "https://example.com#a", "https://example.com/…"},
		{"a user", "https://user:pass@example.com:8443/a@b", "https://user:***@example.com:8443/…"},
		{"an address", "ops@example.com", "ops@example.com"},
		{"a number", "sms:4477", "sms:4477"},
	} {
		if got := MaskPath(tc.give); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}
