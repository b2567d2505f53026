package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// PostgresPair is a PostgreSQL primary whose commits wait for its standby.
type PostgresPair struct {
	Primary, Standby *Server
}

// PostgresPair starts a primary and its synchronous standby.
func (r *Run) PostgresPair(ctx context.Context) (*PostgresPair, error) {
	primaryDir, err := r.postgresDir()
	if err != nil {
		return nil, err
	}
	standbyDir, err := r.postgresDir()
	if err != nil {
		return nil, err
	}
	if err := initPostgres(ctx, primaryDir); err != nil {
		return nil, err
	}
	p := &PostgresPair{Primary: r.postgresIn(primaryDir), Standby: r.postgresIn(standbyDir)}
	if err := p.Primary.Start(ctx); err != nil {
		return nil, err
	}
	return p, p.follow(ctx)
}

// URL returns a database URL with both servers.
func (p *PostgresPair) URL() string { return PostgresURL(p.Primary.Addr + "," + p.Standby.Addr) }

// Promote promotes the standby. It then calls end, which must end the process of the old primary,
// and makes that server the new standby.
func (p *PostgresPair) Promote(ctx context.Context, end func(*Server) error) error {
	// pg_promote(true) would wait in a query that the end of the recovery may cancel.
	if err := execute(ctx, p.Standby, "SELECT pg_promote(false)"); err != nil {
		return err
	}
	if err := awaitTrue(ctx, p.Standby, "the standby to be promoted", "SELECT NOT pg_is_in_recovery()"); err != nil {
		return err
	}
	p.Primary, p.Standby = p.Standby, p.Primary
	if err := end(p.Standby); err != nil {
		return err
	}
	return p.follow(ctx)
}

// StartAlone starts an old primary. Its commits do not wait for a standby.
func StartAlone(ctx context.Context, s *Server) error {
	return errors.Join(s.Start(ctx), execute(ctx, s, "ALTER SYSTEM SET synchronous_standby_names = ''"), execute(ctx, s, "SELECT pg_reload_conf()"))
}

// follow replaces the data of the standby by a copy of the primary and waits until the primary's
// commits wait for the standby.
func (p *PostgresPair) follow(ctx context.Context) error {
	dir := p.Standby.Dir
	data := filepath.Join(dir, "data")
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(p.Primary.Addr)
	backup := postgresCommand(ctx, dir, "pg_basebackup", "-D", data, "-h", host, "-p", port, "-U", "postgres",
		"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync")
	if output, err := backup.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_basebackup: %w\n%s", err, output)
	}
	return errors.Join(p.Standby.Start(ctx),
		awaitTrue(ctx, p.Primary, "the standby to stream", "SELECT count(*) = 1 FROM pg_stat_replication WHERE application_name = 'walreceiver' AND state = 'streaming'"),
		execute(ctx, p.Primary, "ALTER SYSTEM SET synchronous_standby_names = '*'"), execute(ctx, p.Primary, "SELECT pg_reload_conf()"),
		awaitTrue(ctx, p.Primary, "the standby to be synchronous", "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))
}

// execute runs a statement.
func execute(ctx context.Context, s *Server, statement string) error {
	c, err := DialPostgres(ctx, s.Addr)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, statement)
	return errors.Join(err, c.Close(ctx))
}

// awaitTrue waits until a query returns true.
func awaitTrue(ctx context.Context, s *Server, label, query string) error {
	return Until(ctx, StartTime, label, func() (holds bool) {
		c, err := DialPostgres(ctx, s.Addr)
		if err != nil {
			return false
		}
		err = c.QueryRow(ctx, query).Scan(&holds)
		return errors.Join(err, c.Close(ctx)) == nil && holds
	})
}
