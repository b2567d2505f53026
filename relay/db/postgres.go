package db

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/penstock/penstock/relay"
)

func (d *DB) openPostgres(ctx context.Context) error {
	d.dialect = postgres{}
	cfg, err := parseURL(d.opts.URL)
	if err != nil {
		return err
	}
	d.servers = newServers(cfg, d.opts, func(ctx context.Context, conn *pgx.Conn) error {
		check := d.onConnect.Load()
		if check == nil {
			return nil
		}
		return (*check)(ctx, func(ctx context.Context, query string, args []any, dest ...any) error {
			return conn.QueryRow(ctx, query, args...).Scan(dest...)
		})
	})
	d.readPool = sql.OpenDB(d.servers)
	d.writePool = d.readPool
	n := cmp.Or(max(d.opts.MaxConns, 0), 16)
	d.readPool.SetMaxOpenConns(n)
	d.readPool.SetMaxIdleConns(n)
	d.readPool.SetConnMaxIdleTime(5 * time.Minute)
	if len(d.servers.hosts) > 1 {
		d.Probe(ctx) // finds the newest primary before an old one is used
	}
	ctx, cancel := context.WithTimeout(ctx, d.opts.Timeout)
	defer cancel()
	return Wrap("database", d.explain(d.readPool.PingContext(ctx)))
}

// CheckURL returns the error that Open would return for an invalid URL. It does not connect.
// An empty URL is valid.
func CheckURL(raw string) error {
	if raw == "" {
		return nil
	}
	_, err := parseURL(raw)
	return err
}

const expectedURL = "expected postgres://user:password@host:5432/database"

// parseURL parses a URL. Its errors never contain the password.
func parseURL(raw string) (*pgx.ConnConfig, error) {
	if !strings.HasPrefix(raw, "postgres://") && !strings.HasPrefix(raw, "postgresql://") {
		return nil, relay.Invalid("database.url", expectedURL)
	}
	cfg, err := pgx.ParseConfig(raw)
	if err != nil {
		reason := expectedURL
		for cause := err; cause != nil; cause = errors.Unwrap(cause) {
			if u, ok := errors.AsType[*url.Error](cause); ok {
				reason = u.Err.Error() // without the URL
				break
			}
		}
		return nil, relay.Invalid("database.url", "it does not parse: "+reason)
	}
	if len(hostsOf(cfg)) > 1 || cfg.ValidateConnect != nil { // target_session_attrs sets the latter
		cfg.ValidateConnect = refuseStandby
	}
	cfg.RuntimeParams["application_name"] = "penstock"
	cfg.RuntimeParams["timezone"] = "UTC"
	return cfg, nil
}

// servers connects to the hosts of the URL. It is the driver.Connector of the pool.
type servers struct {
	hosts []*serverHost
	limit time.Duration // for connecting to one address
	admit func(Server) error

	mu       sync.Mutex
	lastHost int // the index of the host that Connect tries first
	// failedAt is the start of the last check that failed. Connections that were checked
	// earlier are not used again, so that only one statement waits for a server that hangs.
	failedAt time.Time
	// identityErr is the error if the last new connection's server refused to report its identity.
	identityErr error
}

type serverHost struct {
	name    string // host:port
	config  *pgx.ConnConfig
	connect driver.Connector
	err     error // of the last attempt to connect; guarded by servers.mu
}

// setError records the result of an attempt to connect, unless the attempt failed because
// the ctx of its caller has ended.
func (h *serverHost) setError(ctx context.Context, err error) {
	if err == nil {
		h.err = nil
	} else if ctx.Err() == nil {
		h.err = hostError{err}
	}
}

// hostError is the error of a connection to a host. Its text does not name the local
// address, which differs from one connection to the next.
type hostError struct{ error }

var localAddress = regexp.MustCompile(`\S+->`)

// Error returns the text without the local address.
func (e hostError) Error() string { return localAddress.ReplaceAllString(e.error.Error(), "") }

// Unwrap returns the error of the driver.
func (e hostError) Unwrap() error { return e.error }

// maxConnectTime limits the time of connecting to an address. With several hosts the limit is
// lower, so that all of them can be tried within the timeout of a statement.
const maxConnectTime = 5 * time.Second

// maxPingTime limits the check of a connection. A connection is checked before it is used if its
// last check was a second ago or earlier.
const maxPingTime = 2 * time.Second

func newServers(cfg *pgx.ConnConfig, o Options, check func(context.Context, *pgx.Conn) error) *servers {
	s := &servers{admit: o.Admit}
	if s.admit == nil {
		s.admit = func(Server) error { return nil }
	}
	s.hosts = hostsOf(cfg)
	s.limit = min(maxConnectTime, o.Timeout/time.Duration(len(s.hosts)+1))
	for _, h := range s.hosts {
		h.config.ConnectTimeout = min(cmp.Or(h.config.ConnectTimeout, s.limit), s.limit)
		validate := h.config.ValidateConnect
		h.config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			if validate != nil {
				if err := validate(ctx, conn); err != nil {
					return err
				}
			}
			return s.prepare(ctx, conn)
		}
		h.connect = stdlib.GetConnector(*h.config, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
			ctx, cancel := context.WithTimeout(ctx, s.limit)
			defer cancel()
			err := check(ctx, conn)
			if err != nil {
				_ = conn.Close(ctx) // the driver does not close it
			}
			return err
		}), stdlib.OptionResetSession(s.reuse),
			stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false }))
	}
	return s
}

// hostsOf returns the hosts of a URL in their order, each with its addresses.
func hostsOf(cfg *pgx.ConnConfig) (hosts []*serverHost) {
	for _, f := range append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}}, cfg.Fallbacks...) {
		name := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port)))
		i := slices.IndexFunc(hosts, func(h *serverHost) bool { return h.name == name })
		if i >= 0 {
			hosts[i].config.Fallbacks = append(hosts[i].config.Fallbacks, f)
			continue
		}
		config := cfg.Copy()
		config.Host, config.Port, config.TLSConfig, config.Fallbacks = f.Host, f.Port, f.TLSConfig, nil
		hosts = append(hosts, &serverHost{name: name, config: config})
	}
	return hosts
}

// Connect connects to the host that was used last or, if that fails, to the next host that
// can be used.
func (s *servers) Connect(ctx context.Context) (driver.Conn, error) {
	s.mu.Lock()
	lastHost := s.lastHost
	s.mu.Unlock()
	var errs []error
	for i := range s.hosts {
		no := (lastHost + i) % len(s.hosts)
		conn, err := s.hosts[no].connect.Connect(ctx)
		s.mu.Lock()
		s.hosts[no].setError(ctx, err)
		if err == nil {
			s.lastHost = no
		}
		s.mu.Unlock()
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Driver returns the driver of the connections.
func (s *servers) Driver() driver.Driver { return stdlib.GetDefaultDriver() }

// session has the known properties of a connection.
type session struct {
	server    Server
	checkedAt time.Time
}

// sessionKey is the key of a connection's session in its custom data.
const sessionKey = "penstock"

// prepare checks the server of a new connection and configures its planner:
//   - random access costs little, because the rows are in memory;
//   - statements take milliseconds, so compiling them is not worth it;
//   - each batch is planned by its size: a plan from when the table was small took 20 s for
//     5,000 outcomes, a new plan 0.2 s;
//   - joins are nested loops over an index, as in SQLite: without statistics, PostgreSQL
//     would hash a whole table for a batch of keys.
func (s *servers) prepare(ctx context.Context, conn *pgconn.PgConn) error {
	server, err := s.identify(ctx, conn)
	if err != nil {
		return err
	}
	if err := s.admit(server); err != nil {
		return err
	}
	conn.CustomData()[sessionKey] = &session{server, time.Now()}
	_, err = conn.Exec(ctx, "SET random_page_cost = 1.1; SET jit = off; SET plan_cache_mode = force_custom_plan; SET enable_hashjoin = off; SET enable_mergejoin = off").ReadAll()
	return err
}

// identify reads the identity of a server. The name of the current WAL file begins with the
// timeline; pg_control_checkpoint() returns the old timeline for minutes after a promotion.
// A standby, or a server without these functions, has no identity.
func (s *servers) identify(ctx context.Context, conn *pgconn.PgConn) (server Server, err error) {
	server.Host = conn.Conn().RemoteAddr().String()
	values, err := queryRow(ctx, conn, `
SELECT system_identifier, CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END
FROM pg_control_system()`)
	pg, refused := errors.AsType[*pgconn.PgError](err)
	hidden := refused && (pg.Code == "42883" || pg.Code == "42501" || pg.Code == "0A000")
	s.mu.Lock()
	s.identityErr = nil
	if hidden {
		s.identityErr = err
	}
	s.mu.Unlock()
	if hidden {
		return server, nil
	}
	if err != nil {
		return server, err
	}
	if values[1] != "" {
		timeline, err := strconv.ParseUint(values[1], 16, 32)
		if err != nil {
			return server, fmt.Errorf("timeline of %s: %w", server.Host, err)
		}
		server.System, server.Timeline = values[0], uint32(timeline)
	}
	return server, nil
}

// errStandby is the error of a connection to a standby.
var errStandby = errors.New("it is a read-only standby")

func refuseStandby(ctx context.Context, conn *pgconn.PgConn) error {
	values, err := queryRow(ctx, conn, "SHOW transaction_read_only")
	if err == nil && values[0] == "on" {
		err = errStandby
	}
	return err
}

func queryRow(ctx context.Context, conn *pgconn.PgConn, query string) (values []string, err error) {
	results, err := conn.Exec(ctx, query).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return nil, errors.New("the server did not return one row")
	}
	for _, value := range results[0].Rows[0] {
		values = append(values, string(value))
	}
	return values, nil
}

// reuse checks a connection before it is used again: its server may be refused now, or may
// hang.
func (s *servers) reuse(ctx context.Context, conn *pgx.Conn) error {
	sess, ok := conn.PgConn().CustomData()[sessionKey].(*session)
	if !ok || s.admit(sess.server) != nil {
		return driver.ErrBadConn
	}
	s.mu.Lock()
	failed := sess.checkedAt.Before(s.failedAt)
	s.mu.Unlock()
	if failed {
		return driver.ErrBadConn
	}
	if time.Since(sess.checkedAt) < time.Second {
		return nil
	}
	began := time.Now()
	pingCtx, cancel := context.WithTimeout(ctx, maxPingTime)
	defer cancel()
	if conn.PgConn().Ping(pingCtx) != nil {
		if ctx.Err() == nil { // the caller did not cancel the ping
			s.mu.Lock()
			if began.After(s.failedAt) {
				s.failedAt = began
			}
			s.mu.Unlock()
		}
		return driver.ErrBadConn
	}
	sess.checkedAt = time.Now()
	return nil
}

// Probe connects to each host of the URL. It updates HostErrors, and selects a host that can
// be used for the next connection.
func (d *DB) Probe(ctx context.Context) {
	if d.servers == nil {
		return
	}
	var probes sync.WaitGroup
	for _, h := range d.servers.hosts {
		probes.Go(func() {
			conn, err := pgx.ConnectConfig(ctx, h.config)
			if err == nil {
				_ = conn.Close(ctx)
			}
			d.servers.mu.Lock()
			defer d.servers.mu.Unlock()
			h.setError(ctx, err)
		})
	}
	probes.Wait()
	d.servers.mu.Lock()
	defer d.servers.mu.Unlock()
	if d.servers.hosts[d.servers.lastHost].err != nil {
		d.servers.lastHost = max(0, slices.IndexFunc(d.servers.hosts, func(h *serverHost) bool { return h.err == nil }))
	}
}

// HostErrors returns the errors of the last attempts to connect to each host of the URL. A
// standby is not an error.
func (d *DB) HostErrors() error {
	if d.servers == nil {
		return nil
	}
	d.servers.mu.Lock()
	defer d.servers.mu.Unlock()
	var errs []error
	for _, h := range d.servers.hosts {
		if !errors.Is(h.err, errStandby) {
			errs = append(errs, h.err)
		}
	}
	return errors.Join(errs...)
}

// IdentityError returns the reason why the server's identity cannot be checked, or nil.
func (d *DB) IdentityError() error {
	if d.servers == nil {
		return nil
	}
	d.servers.mu.Lock()
	defer d.servers.mu.Unlock()
	return d.servers.identityErr
}

// HasSeveralHosts reports whether the URL names more than one host.
func (d *DB) HasSeveralHosts() bool { return d.servers != nil && len(d.servers.hosts) > 1 }

// withHost adds the name of the server to an error. An error of connecting already names the
// servers.
func (d *DB) withHost(err error) error {
	if _, connecting := errors.AsType[*pgconn.ConnectError](err); err == nil || connecting {
		return err
	}
	d.servers.mu.Lock()
	defer d.servers.mu.Unlock()
	return fmt.Errorf("PostgreSQL at %s: %w", d.servers.hosts[d.servers.lastHost].name, err)
}

// explain adds the errors of the hosts to a timeout.
func (d *DB) explain(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		if hosts := d.HostErrors(); hosts != nil {
			return fmt.Errorf("%w (%w)", err, hosts)
		}
	}
	return err
}
