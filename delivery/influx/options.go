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

// Language is the query language that readings are read with.
type Language string

// The languages. Auto queries the server for its version.
const (
	Auto     Language = ""
	InfluxQL Language = "influxql"
	Flux     Language = "flux"
)

// Options says where the server is. Only URL and Bucket are required.
type Options struct {
	URL string // http:// or https://, with or without a path
	// Token is an API token, or "user:password" for InfluxDB 1.8; it may be empty where the
	// server requests none.
	Token  string
	Org    string // of InfluxDB 2; 1.8 ignores it
	Bucket string // a bucket, or "database" or "database/retention-policy" for 1.8

	// Language forces a query language; the zero value queries the server.
	Language Language
	// MaxLines is the most lines of one write call; 0 means 5,000.
	MaxLines int
	// Timeout bounds one call to the server; 0 means 30 s.
	Timeout time.Duration
	// NoGzip sends bodies, and requests answers, as they are; to and from this host itself
	// they are never compressed, because that costs more than it saves.
	NoGzip bool

	Transport http.RoundTripper // nil means a transport of its own
	Logger    *slog.Logger      // nil means silence
	Now       func() time.Time  // nil means time.Now
}

// withDefaults checks the options and fills in what was left out.
func (o Options) withDefaults() (Options, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return o, fmt.Errorf("influx: url: want http://host:port or https://host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return o, fmt.Errorf("influx: url: want no user, query or fragment; credentials go into the token")
	case strings.Trim(o.Bucket, "/ ") == "":
		return o, fmt.Errorf("influx: bucket: want a bucket, or database/retention-policy")
	case strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return o, fmt.Errorf("influx: token: blanks and control characters cannot be sent")
	case o.Language != Auto && o.Language != InfluxQL && o.Language != Flux:
		return o, fmt.Errorf("influx: language %q: want influxql or flux", o.Language)
	}
	o.URL = strings.TrimRight(u.String(), "/") + "/"
	ip := net.ParseIP(u.Hostname())
	o.NoGzip = o.NoGzip || u.Hostname() == "localhost" || ip.IsLoopback()
	o.MaxLines, o.Timeout = cmp.Or(o.MaxLines, 5000), cmp.Or(o.Timeout, 30*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableCompression = o.NoGzip
		t.MaxIdleConnsPerHost = idleConns
		t.ReadBufferSize = 32 << 10 // an answer with a day of readings is one read
		o.Transport = t
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, nil
}

// idleConns is the number of connections that are kept for the next calls: a dashboard
// requests many panels at once.
const idleConns = 32
