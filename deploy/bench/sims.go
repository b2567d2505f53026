package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/penstock/penstock/deploy/servers"
)

// simAccount is an account and its SIMs, n of them.
type simAccount struct {
	account int
	token   string
	n       int
}

// The numbers of the i-th SIM: three orders of the same SIMs.
func (acct simAccount) iccid(i int) string  { return fmt.Sprintf("8944%015d", i) }
func (acct simAccount) imsi(i int) string   { return fmt.Sprintf("23415%010d", i*7919%acct.n) }
func (acct simAccount) msisdn(i int) string { return fmt.Sprintf("447%09d", i*104729%acct.n) }

// sims measures pages of an account's SIMs.
func sims(ctx context.Context, p *peers, s settings, r *report) error {
	d, err := p.daemon(ctx, s)
	if err != nil {
		return err
	}
	defer d.stop()
	acct := simAccount{account: 1, token: d.token, n: s.sims}
	pool, err := d.createPool(ctx, acct)
	if err != nil {
		return err
	}
	if err := d.fill(ctx, acct, pool); err != nil {
		return err
	}
	r.lists = &lists{sims: s.sims}
	return r.lists.measure(d, acct, pool, s)
}

// createPool creates a pool and returns its id.
func (d *daemon) createPool(ctx context.Context, acct simAccount) (id string, err error) {
	req, err := jsonPost(ctx, "http://"+d.addr+"/v3/mno/pool", map[string]string{"name": "bench"})
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Auth-Token", acct.token)
	var answer struct {
		Data struct{ ID json.RawMessage }
	}
	err = answered(http.DefaultClient, req, http.StatusCreated, &answer)
	return strings.Trim(string(answer.Data.ID), `"`), err
}

// fillPiece is how many SIMs one statement writes.
const fillPiece = 2000

// fill writes the SIMs of an account, all of them in a pool, as the store declares them:
// an import of the store would be against the picture of docs/architecture.md.
func (d *daemon) fill(ctx context.Context, acct simAccount, pool string) error {
	driver, url, tidy := "sqlite", filepath.Join(d.dir, "penstock.db")+"?_pragma=busy_timeout(60000)", "PRAGMA wal_checkpoint"
	if d.beside.postgres != nil { // as its housekeeping leaves the tables
		driver, url, tidy = "pgx", servers.PostgresURL(d.beside.postgres.Addr), "VACUUM (ANALYZE) sim"
	}
	db, err := sql.Open(driver, url)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	const insert = `
		INSERT INTO sim (
		  account, iccid, imsi, msisdn, pool, subscriber, state, requested, job, service_4g, service_5g,
		  pin, pin2, puk, puk2, monthly, warning, cap, recipients, detached
		)
		VALUES `
	for from := 0; from < acct.n; from += fillPiece {
		rows := make([]string, 0, fillPiece)
		for i := from; i < min(from+fillPiece, acct.n); i++ {
			rows = append(rows, fmt.Sprintf(
				"(%d, '%s', '%s', '%s', '%s', '', 'active', 'active', '', 1, 0, '1234', '5678', '12345678', '87654321', 0, 0, 'none', '', '')",
				acct.account, acct.iccid(i), acct.imsi(i), acct.msisdn(i), pool))
		}
		if _, err := db.ExecContext(ctx, insert+strings.Join(rows, ", ")); err != nil {
			return err
		}
	}
	const count = `
		INSERT INTO sim_count (account, list, n)
		SELECT account, 'sim', count(*)
		FROM sim
		GROUP BY account`
	for _, statement := range []string{count, tidy} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// page requests a page of the gateway and checks the total and the count. The body is
// read into memory that is used again: what this program collects is not measured.
func (d *daemon) page(client *http.Client, body *bytes.Buffer, acct simAccount, query string, total, count int) error {
	body.Reset()
	req, err := http.NewRequest(http.MethodGet, "http://"+d.addr+"/v3/mno"+query, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("X-Auth-Token", acct.token)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err = body.ReadFrom(resp.Body); err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	want := fmt.Appendf(nil, `"total":%d,"count":%d}}`, total, count)
	if resp.StatusCode != http.StatusOK || !bytes.HasSuffix(bytes.TrimSpace(body.Bytes()), want) {
		got := body.Bytes()
		return fmt.Errorf("%s: %s: %.200s … %s, want %s", query, resp.Status, got, got[max(0, len(got)-100):], want)
	}
	return nil
}

// timed measures how long something takes, many times.
func timed(times int, do func(n int) error) (outcome, error) {
	took := make([]time.Duration, times)
	start := time.Now()
	for n := range took {
		began := time.Now()
		if err := do(n); err != nil {
			return outcome{}, err
		}
		took[n] = time.Since(began)
	}
	return outcomeOf(took, time.Since(start)), nil
}
