package influx_test

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/delivery/influx"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestInvalidOptionsAreRefused(t *testing.T) {
	cases := []struct {
		name    string
		options influx.Options
		want    string // the beginning of the error; "" if the options are valid
	}{
		{"a URL and a bucket", influx.Options{URL: "http://localhost:8086", Bucket: "db"}, ""},
		{"a path before the API", influx.Options{URL: "https://example.org/influx/", Bucket: "db/rp", Token: "a:b"}, ""},
		{"no URL", influx.Options{Bucket: "db"}, "influx: url"},
		{"a URL without a scheme", influx.Options{URL: "localhost:8086", Bucket: "db"}, "influx: url"},
		{"another scheme", influx.Options{URL: "udp://localhost:8089", Bucket: "db"}, "influx: url"},
		{"a password in the URL", influx.Options{URL: "http://u:secret@localhost:8086", Bucket: "db"}, "influx: url"},
		{"no bucket", influx.Options{URL: "http://localhost:8086", Bucket: "/"}, "influx: bucket"},
		{"a line break in the token", influx.Options{URL: "http://localhost:8086", Bucket: "db", Token: "secret\r\nX: y"}, "influx: token"},
		{"an unknown language", influx.Options{URL: "http://localhost:8086", Bucket: "db", Language: "sql"}, "influx: language"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := influx.New(tc.options)
			if tc.want == "" {
				relaytest.NoError(t, err)
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error = %v, want it to begin with %q, without the secret", err, tc.want)
			}
		})
	}
}
