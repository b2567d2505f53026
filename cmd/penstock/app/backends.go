package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/delivery/email"
	"github.com/penstock/penstock/delivery/embedded/mail"
	"github.com/penstock/penstock/delivery/embedded/readings"
	"github.com/penstock/penstock/delivery/embedded/redis"
	"github.com/penstock/penstock/delivery/influx"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/cache"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
)

// mailer sends one mail.
type mailer interface {
	Send(ctx context.Context, m outbox.Mail) (email.Result, error)
}

// backends has the back ends of the gateway. A back end without a configured server is embedded.
type backends struct {
	records  *recordStores
	cache    *cache.DB
	readings iot.ReadingStore
	mail     mailer
	embedded []embeddedStore
	list     []admin.Backend
	closers  []func() error
	timings  *admin.Timings // nil disables measurements
	primary  *primaryGuard  // nil allows every PostgreSQL server
}

func openBackends(ctx context.Context, cfg config.Config, log *slog.Logger, timings *admin.Timings, primary *primaryGuard) (b backends, err error) {
	b.timings, b.primary = timings, primary
	for _, open := range []func(context.Context, config.Config, *slog.Logger) error{b.openRecords, b.openCache, b.openReadings, b.openMail} {
		if err := open(ctx, cfg, log); err != nil {
			return b, err
		}
	}
	b.mail = timedMail{b.mail, b.timings.Backend("mail")}
	for _, backend := range b.list {
		log.Info("back end configured", "name", backend.Name, "kind", backend.Note)
	}
	return b, nil
}

// embeddedMarks is the largest number of frames that the embedded Redis stores for the check for
// duplicates. A frame takes about 150 bytes, and three times as much before a garbage
// collection.
const embeddedMarks = 200_000

// openCache opens Redis, which stores the timers of the queue and data that can be rebuilt.
func (b *backends) openCache(ctx context.Context, cfg config.Config, log *slog.Logger) (err error) {
	o, note := cache.Options{URL: cfg.Redis.URL, Logger: log, Observe: b.timings.Backend("queue")}, "redis"
	if cfg.Redis.URL == "" {
		server, err := redis.Start(redis.Options{})
		if err != nil {
			return err
		}
		b.closers = append(b.closers, server.Close)
		o.Dialer, o.MaxMarks, note = server.Dial, embeddedMarks, "embedded"
	}
	if b.cache, err = cache.Open(o); err != nil {
		return err
	}
	b.closers = append(b.closers, b.cache.Close)
	if err := b.cache.Check(ctx); err != nil {
		log.Error("Redis check failed", "error", err)
	}
	// Redis has the name "queue" in /readyz and the metrics.
	b.list = append(b.list, admin.Backend{Name: "queue", Note: note, Check: b.cache.Check})
	return nil
}

func (b *backends) openReadings(_ context.Context, cfg config.Config, log *slog.Logger) error {
	note := "embedded"
	if cfg.Influx.URL == "" {
		// The file with the number of writes is outside the directory of the database, so that a copy
		// of the directory does not include the file.
		store, err := readings.Open(filepath.Join(cfg.DataDir, readingsDir), filepath.Join(cfg.DataDir, readings.File+db.CommitsSuffix))
		if err != nil {
			return err
		}
		b.readings, b.closers = store, append(b.closers, store.Close)
		b.embedded = append(b.embedded, embeddedStore{store, readings.File, []event.Kind{event.Uplink}, "readings that were written over REST or by a replay"})
	} else {
		store, err := newInflux(cfg.Influx, log)
		if err != nil {
			return err
		}
		b.readings, note = advisedReadings{store}, "influxdb"
		b.closers = append(b.closers, store.Close)
	}
	b.readings = timedReadings{b.readings, b.timings.Backend("readings")}
	b.list = append(b.list, admin.Backend{Name: "readings", Note: note, Check: b.readings.Ping})
	return nil
}

// advisedReadings adds the setting to correct to the errors of InfluxDB.
type advisedReadings struct{ *influx.Store }

// Ping reports whether InfluxDB can be used.
func (r advisedReadings) Ping(ctx context.Context) error {
	err := r.Store.Ping(ctx)
	if err == nil {
		return nil
	}
	for status, setting := range map[string]string{
		" 401 ": "influx.token (PENSTOCK_INFLUX_TOKEN)", " 403 ": "influx.token (PENSTOCK_INFLUX_TOKEN), which may not use the bucket",
		" 404 ": "influx.bucket (PENSTOCK_INFLUX_BUCKET) or influx.org (PENSTOCK_INFLUX_ORG)",
	} {
		if strings.Contains(err.Error(), status) {
			return fmt.Errorf("check %s: %w", setting, err)
		}
	}
	return err
}

func newInflux(c config.Influx, log *slog.Logger) (*influx.Store, error) {
	return influx.New(influx.Options{URL: c.URL, Token: c.Token, Org: c.Org, Bucket: c.Bucket, Logger: log})
}

// openMail opens the SMTP client. Without an SMTP server, it opens the directory to which mails are
// written.
func (b *backends) openMail(_ context.Context, cfg config.Config, log *slog.Logger) error {
	if cfg.SMTP.Addr == "" {
		sink, err := mail.New(cfg.DataDir, mail.Options{From: cfg.SMTP.From})
		if err != nil {
			return err
		}
		b.mail = sink
		b.list = append(b.list, admin.Backend{Name: "mail", Note: "sink, simulated", Check: noCheck})
		log.Info("mails are written to a directory", "path", sink.Dir())
		return nil
	}
	client, err := newMailClient(cfg.SMTP)
	if err != nil {
		return err
	}
	b.mail, b.closers = client, append(b.closers, func() error { client.Close(); return nil })
	b.list = append(b.list, admin.Backend{Name: "mail", Note: "smtp", Check: dialCheck(cfg.SMTP.Addr)})
	return nil
}

func newMailClient(c config.SMTP) (*email.Client, error) {
	key, err := loadDKIM(c.DKIM)
	if err != nil {
		return nil, err
	}
	return email.New(email.Options{Addr: c.Addr, Username: c.Username, Password: c.Password, From: c.From, TLS: c.TLS, DKIM: key})
}

// loadDKIM loads the DKIM key; nil if none is configured.
func loadDKIM(c config.DKIM) (*email.DKIM, error) {
	if c.KeyFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("smtp.dkim.key_file: %w", err)
	}
	key, err := email.ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("smtp.dkim.key_file %s: %w", c.KeyFile, err)
	}
	return &email.DKIM{Domain: c.Domain, Selector: c.Selector, Key: key}, nil
}

// mailDomain returns the domain of the sender, for Message-IDs; empty if it is invalid.
func mailDomain(sender string) string {
	address, err := netmail.ParseAddress(sender)
	if err != nil {
		return ""
	}
	return address.Address[strings.LastIndexByte(address.Address, '@')+1:]
}

// noCheck is the check of a back end that cannot be down.
func noCheck(context.Context) error { return nil }

// dialCheck returns a check that connects to a server.
func dialCheck(addr string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// journals returns the journals as back ends. A journal is not ready if it is full, or if its
// processing is waiting for another back end.
func journals(intakes []*intake.Intake) []admin.Backend {
	var backends []admin.Backend
	for _, intake := range intakes {
		backends = append(backends, admin.Backend{Name: "journal " + string(intake.Kind()), Note: "embedded", Check: func(context.Context) error {
			s := intake.Status()
			if s.Outage != "" {
				return fmt.Errorf("processing is waiting: %s", s.Outage)
			}
			return s.Journal.Err
		}})
	}
	return backends
}

func (b *backends) close() error {
	var errs []error
	for i := len(b.closers) - 1; i >= 0; i-- {
		errs = append(errs, b.closers[i]())
	}
	return errors.Join(errs...)
}

// observer is called with the duration of an operation of a back end.
type observer func(operation string, took time.Duration)

// timedReadings measures the operations of a store of readings.
type timedReadings struct {
	iot.ReadingStore
	observe observer
}

func (t timedReadings) Write(ctx context.Context, b iot.Readings) ([]iot.RefusedItem, error) {
	defer t.observeSince("write", time.Now())
	return t.ReadingStore.Write(ctx, b)
}

func (t timedReadings) Readings(ctx context.Context, q iot.Query) ([]iot.Point, error) {
	defer t.observeSince("readings", time.Now())
	return t.ReadingStore.Readings(ctx, q)
}

func (t timedReadings) Aggregate(ctx context.Context, q iot.AggregateQuery) ([]iot.Bucket, error) {
	defer t.observeSince("aggregate", time.Now())
	return t.ReadingStore.Aggregate(ctx, q)
}

func (t timedReadings) Forget(ctx context.Context, acct relay.AccountID, old []iot.ExpiredPoints) error {
	defer t.observeSince("forget", time.Now())
	return t.ReadingStore.Forget(ctx, acct, old)
}

func (t timedReadings) Latest(ctx context.Context, acct relay.AccountID, deviceID string, types []string) ([]iot.Point, error) {
	defer t.observeSince("latest", time.Now())
	return t.ReadingStore.Latest(ctx, acct, deviceID, types)
}

func (t timedReadings) LastStored(ctx context.Context, acct relay.AccountID, deviceIDs []string) (map[string]time.Time, error) {
	defer t.observeSince("last_stored", time.Now())
	return t.ReadingStore.LastStored(ctx, acct, deviceIDs)
}

func (t timedReadings) observeSince(operation string, began time.Time) {
	t.observe(operation, time.Since(began))
}

// timedMail measures the sending of mails.
type timedMail struct {
	mailer
	observe observer
}

// Send implements mailer.
func (t timedMail) Send(ctx context.Context, m outbox.Mail) (email.Result, error) {
	began := time.Now()
	defer func() { t.observe("send", time.Since(began)) }()
	return t.mailer.Send(ctx, m)
}
