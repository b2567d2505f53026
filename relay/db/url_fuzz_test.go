package db

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzParseURL: an error shows no password.
func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{"", "postgres://u:hushhush@h:5432/d?sslmode=disable", "postgres://u:hushhush@h:x/d", "postgresql://u:hushhush@a,b/d?connect_timeout=soon", "mysql://u:hushhush@h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		_, err := parseURL(raw)
		if err == nil {
			return
		}
		u, bad := url.Parse(raw)
		if bad != nil || u.User == nil {
			return
		}
		if password, _ := u.User.Password(); len(password) >= 8 && strings.Contains(err.Error(), password) {
			t.Errorf("the error of %q shows the password: %v", raw, err)
		}
	})
}
