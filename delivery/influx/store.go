package influx

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	influxdb2 "github.com/influxdata/influxdb-client-go/v2"
	"github.com/influxdata/influxdb-client-go/v2/api"
	httpapi "github.com/influxdata/influxdb-client-go/v2/api/http"
)

// Store is an iot.ReadingStore on InfluxDB. It may be used by several
// goroutines at once.
type Store struct {
	opts   Options
	client influxdb2.Client
	http   httpapi.Service
	writes api.WriteAPIBlocking
	// known is what the server said it is; nil until it was asked, and again
	// after a call failed: it may be another server by then.
	known atomic.Pointer[server]
}

// New makes a store. It does not speak to the server yet, so that a daemon can
// start before its InfluxDB does; Ping says how the server is.
func New(o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	client := influxdb2.NewClientWithOptions(o.URL, o.Token, influxdb2.DefaultOptions().
		SetHTTPClient(&http.Client{Transport: o.Transport, Timeout: o.Timeout, CheckRedirect: noRedirect}).
		SetApplicationName("penstock").
		SetPrecision(time.Nanosecond).
		SetUseGZip(!o.NoGzip))
	return &Store{
		opts:   o,
		client: client,
		http:   client.HTTPService(),
		writes: client.WriteAPIBlocking(o.Org, o.Bucket),
	}, nil
}

// noRedirect makes a redirection an answer: followed, it could carry the token
// elsewhere or turn a POST into a GET that succeeds and stores nothing.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Ping reports whether the bucket can be written to: it writes nothing to it,
// which the server checks like any other write, up to token and bucket.
func (s *Store) Ping(ctx context.Context) error {
	if _, err := s.server(ctx); err != nil {
		return err
	}
	err := s.writes.WriteRecord(ctx, "")
	if j := judge(err); j.verdict == badLines {
		return nil // InfluxDB 2 got as far as missing the points
	}
	return s.failed("ping", err)
}

// Close gives up the connections that are idle.
func (s *Store) Close() error {
	s.client.Close()
	if t, ok := s.opts.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	return nil
}

// failed turns an error of the client into ours; nil stays nil.
func (s *Store) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	s.known.Store(nil)
	return newError(op, err, s.opts.Now())
}

// database splits the bucket as InfluxDB 1.8 does.
func (s *Store) database() (db, rp string) {
	db, rp, _ = strings.Cut(s.opts.Bucket, "/")
	return db, rp
}
