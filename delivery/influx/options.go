package influx

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Language is the language of queries for readings.
type Language string

// The languages. Auto queries the server for its version.
const (
	Auto     Language = ""
	InfluxQL Language = "influxql"
	Flux     Language = "flux"
)

// Options configures a Store. Only URL and Bucket are required.
type Options struct {
	URL string // http:// or https://, with or without a path
	// Token is an API token, or "user:password" for InfluxDB 1.8; empty if the server requires
	// none.
	Token  string
	Org    string // of InfluxDB 2; 1.8 ignores it
	Bucket string // a bucket, or "database" or "database/retention-policy" for 1.8

	// Language forces a query language; the zero value queries the server.
	Language Language
	// MaxLines is the maximum number of lines in one write call; 0 means 5,000.
	MaxLines int
	// Timeout bounds one call to the server; 0 means 30 s.
	Timeout time.Duration
	// NoGzip disables compression. Requests to this machine are never compressed, because that
	// costs more than it saves.
	NoGzip bool

	Transport http.RoundTripper // nil means a new transport
	Logger    *slog.Logger      // nil disables logging
	Now       func() time.Time  // nil means time.Now
}

func (o Options) withDefaults() (Options, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return o, fmt.Errorf("influx: url must be http://host:port or https://host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return o, fmt.Errorf("influx: url must not have a user, a query or a fragment; put credentials into the token")
	case strings.Trim(o.Bucket, "/ ") == "":
		return o, fmt.Errorf("influx: bucket is missing: set a bucket, or database or database/retention-policy for InfluxDB 1.8")
	case strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return o, fmt.Errorf("influx: token must not contain spaces or control characters")
	case o.Language != Auto && o.Language != InfluxQL && o.Language != Flux:
		return o, fmt.Errorf("influx: language must be influxql or flux, not %q", o.Language)
	}
	o.URL = strings.TrimRight(u.String(), "/") + "/"
	ip := net.ParseIP(u.Hostname())
	o.NoGzip = o.NoGzip || u.Hostname() == "localhost" || ip.IsLoopback()
	o.MaxLines, o.Timeout = cmp.Or(o.MaxLines, 5000), cmp.Or(o.Timeout, 30*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableCompression = o.NoGzip
		t.MaxIdleConnsPerHost = maxIdleConns
		t.ReadBufferSize = 32 << 10 // the size of a response with a day of readings
		o.Transport = t
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, nil
}

// maxIdleConns is the largest number of idle connections: a dashboard makes many concurrent queries.
const maxIdleConns = 32
