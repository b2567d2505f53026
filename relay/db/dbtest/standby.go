package dbtest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Pair is a primary and a synchronous standby: a commit waits until the standby has the data.
type Pair struct {
	Primary, Standby *Postgres
}

// StartPair starts both servers and stops them when the test ends.
func StartPair(t testing.TB) *Pair {
	t.Helper()
	p := &Pair{Primary: StartPostgres(t), Standby: newPostgres(t, "", nil)}
	t.Cleanup(p.Standby.Kill)
	p.Standby.follow(p.Primary)
	return p
}

// NewDatabase creates a database and returns a URL that names both servers.
func (p *Pair) NewDatabase(t testing.TB) string {
	t.Helper()
	url := p.Primary.NewDatabase(t)
	host := fmt.Sprintf("127.0.0.1:%d", p.Primary.port)
	return strings.Replace(url, host, fmt.Sprintf("%s,127.0.0.1:%d", host, p.Standby.port), 1)
}

// Promote promotes the standby, does not touch the primary, and swaps the fields Primary and
// Standby.
func (p *Pair) Promote() {
	p.Primary.t.Helper()
	// pg_promote(true) would wait in a query that the end of the recovery may cancel.
	p.Standby.do(p.Standby.t, "SELECT pg_promote(false)")
	p.Standby.awaitTrue("the standby is promoted", "SELECT NOT pg_is_in_recovery()")
	p.Primary, p.Standby = p.Standby, p.Primary
}

// follow makes the server a synchronous standby of primary. After its promotion the server does
// not wait for a standby.
func (p *Postgres) follow(primary *Postgres) {
	p.t.Helper()
	p.Kill()
	if err := os.RemoveAll(p.data()); err != nil {
		p.t.Fatal(err)
	}
	p.run("pg_basebackup", "-D", p.data(), "-h", "127.0.0.1", "-p", strconv.Itoa(primary.port), "-U", "postgres",
		"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync")
	p.Start()
	primary.awaitTrue("the standby streams", "SELECT count(*) = 1 FROM pg_stat_replication WHERE application_name = 'walreceiver' AND state = 'streaming'")
	primary.do(p.t, "ALTER SYSTEM SET synchronous_standby_names = '*'")
	primary.do(p.t, "SELECT pg_reload_conf()")
	primary.awaitTrue("the standby is synchronous", "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
}

// do runs a statement as the superuser.
func (p *Postgres) do(t testing.TB, statement string) {
	t.Helper()
	p.asSuperuser(t, func(ctx context.Context, db *sql.DB) {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	})
}

// awaitTrue waits until a query returns true.
func (p *Postgres) awaitTrue(label, query string) {
	p.t.Helper()
	p.asSuperuser(p.t, func(ctx context.Context, db *sql.DB) {
		p.awaitCondition(ctx, label, func() (holds bool) {
			err := db.QueryRowContext(ctx, query).Scan(&holds)
			return err == nil && holds
		})
	})
}
