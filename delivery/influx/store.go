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

// Store implements iot.ReadingStore on InfluxDB. It is safe for concurrent use.
type Store struct {
	opts   Options
	client influxdb2.Client
	http   httpapi.Service
	writes api.WriteAPIBlocking
	// detected is the probed server; nil before the first probe and after a
	// failed call, because the server may have been replaced.
	detected  atomic.Pointer[server]
	writeOnly atomic.Bool // the token may only write, and this was logged
}

// New returns a store. It does not connect, so that a daemon can start before
// its InfluxDB; Ping checks the server.
func New(o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	// A redirect is returned as the response. Following it could send the token elsewhere,
	// or turn a POST into a GET that succeeds and stores nothing.
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
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

// Ping reports whether the bucket can be written to: it sends an empty write,
// which the server checks like any other, including token and bucket.
func (s *Store) Ping(ctx context.Context) error {
	if _, err := s.server(ctx); err != nil {
		return err
	}
	err := s.writes.WriteRecord(ctx, "")
	if verdict, _ := classifyWriteError(err); verdict == badLines {
		return nil // InfluxDB 2 accepted the token and the bucket, and refused only the empty body
	}
	return s.wrapError("ping", err)
}

// Close closes idle connections.
func (s *Store) Close() error {
	s.client.Close()
	if t, ok := s.opts.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	return nil
}

// wrapError converts an error of the client and discards the detected server; nil stays nil.
func (s *Store) wrapError(op string, err error) error {
	if err == nil {
		return nil
	}
	s.detected.Store(nil)
	return newError(op, err, s.opts.Now())
}

// database splits the bucket name as InfluxDB 1.8 does.
func (s *Store) database() (db, rp string) {
	db, rp, _ = strings.Cut(s.opts.Bucket, "/")
	return db, rp
}
