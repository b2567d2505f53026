package outbox

import (
	"strings"
	"testing"
)

func TestMaskTargetHidesSecrets(t *testing.T) {
	for _, tc := range []struct{ name, target, want string }{
		{"values of query parameters", "https://h/p?z=1&a=2&z=3", "https://h/p?z=***&a=***&z=***"},
		{"a password", "https://user:pass@h:8080/p", "https://user:***@h:8080/p"},
		{"a password with at sign and colon", "https://user:p@ss:w@h/p", "https://user:***@h/p"},
		{"a user without a password", "https://user@h", "https://user@h"},
		{"a query without a name", "https://h/?token", "https://h/?***"},
		{"an empty query", "https://h/?", "https://h/?"},
		{"a fragment", "https://h/#token", "https://h/#***"},
		{"a question mark in the fragment", "https://h/#a?b=c", "https://h/#***"},
		{"an at sign in the path", "https://h/a@b:c", "https://h/a@b:c"},
		{"a URL that does not parse", "https://h/%zz?key=secret", "https://h/%zz?key=***"},
		{"blanks and quotes", "http://h/a b?k=\"x y\"", "http://h/a b?k=***"},
		{"an email address", "a+b@example.com", "a+b@example.com"},
		{"an empty string", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := MaskTarget(tc.target); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzMaskTarget(f *testing.F) {
	f.Add("https://user:pass@h/p", "k", "secret-value")
	f.Fuzz(func(t *testing.T, anyTarget, name, value string) {
		if strings.ContainsAny(name+value, "&=?#") || strings.Contains(anyTarget, value) || strings.Contains(name, value) || len(value) < 4 || strings.Contains("https://h/?***=", value) {
			t.Skip("the value also occurs elsewhere in the URL")
		}
		got := MaskTarget("https://h/?" + name + "=" + value)
		if strings.Contains(got, value) || !strings.Contains(got, name) {
			t.Fatalf("got %q, want the name without the value", got)
		}
		_ = MaskTarget(anyTarget)
	})
}

func TestSearchableTargetHasNoSecrets(t *testing.T) {
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

func TestMaskPathHidesPaths(t *testing.T) {
	for _, tc := range []struct{ name, target, want string }{
		{"a path and a query", "https://example.com/a?b", "https://example.com/…"},
		{"a query without a path", "https://example.com?b", "https://example.com/…"},
		{"a fragment", "https://example.com#a", "https://example.com/…"},
		{"a user", "https://user:pass@example.com:8443/a@b", "https://user:***@example.com:8443/…"},
		{"an email address", "ops@example.com", "ops@example.com"},
		{"a phone number", "sms:4477", "sms:4477"},
	} {
		if got := MaskPath(tc.target); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}
