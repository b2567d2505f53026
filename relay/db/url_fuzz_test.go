package db

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzParseURL checks that errors do not contain the password.
func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{"", "postgres://u:hushhush@h:5432/d?sslmode=disable", "postgres://u:hushhush@h:x/d", "postgresql://u:hushhush@a,b/d?connect_timeout=soon", "mysql://u:hushhush@h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		_, err := parseURL(raw)
		if err == nil {
			return
		}
		u, urlErr := url.Parse(raw)
		if urlErr != nil || u.User == nil {
			return
		}
		if password, _ := u.User.Password(); len(password) >= 8 && strings.Contains(err.Error(), password) {
			t.Errorf("the error for %q contains the password: %v", raw, err)
		}
	})
}
