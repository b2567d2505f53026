package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/penstock/penstock/deploy/servers"
)

const (
	pageSize      = 100 // SIMs
	farPage       = 1000
	pagesPerRound = 40
	lastPage      = 0 // stands for the number of the last page
)

// sims measures requests for pages of an account's SIMs.
func sims(ctx context.Context, b *bench) error {
	g, err := b.gateway(ctx, options{})
	if err != nil {
		return err
	}
	var pool struct {
		Data struct{ ID json.RawMessage }
	}
	if err := postJSON(ctx, http.DefaultClient, g.url("/v3/mno/pool"), accountToken, map[string]string{"name": "bench"}, &pool); err != nil {
		return err
	}
	id := strings.Trim(string(pool.Data.ID), `"`)
	if err := g.fill(ctx, b.sims, id); err != nil {
		return err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // keep this process's garbage collection out of the latencies
	t := b.table(fmt.Sprintf("pages of %d of %d SIMs, over HTTP, medians", pageSize, b.sims), "p50", "p99", "aim")
	defer t.Flush()
	for _, l := range lists(b.sims, id) {
		for _, number := range l.pages {
			label, aim := fmt.Sprint(l.name, ", page ", number), "≤ 100ms"
			if number == lastPage {
				label, aim = l.name+", last page", "≤ 500ms"
			}
			s := &subject{name: label, cpu: g.cpu, round: func(ctx context.Context) (outcome, error) { return g.pages(ctx, l, number) }}
			if err := b.inTurns(ctx, s); err != nil {
				return err
			}
			t.row(label, s.quantile(0.5), s.quantile(0.99), aim)
		}
	}
	return nil
}

// list is a list of SIMs and the numbers of the pages that are requested. query returns the
// path and query of the n-th request, without the page, and the number of SIMs that match.
type list struct {
	name  string
	query func(n int) (query string, total int)
	pages []int
}

// lists returns the lists that are measured: of the account with total SIMs, and of a pool that
// has all of them.
func lists(total int, pool string) (lists []list) {
	add := func(name string, query func(n int) (string, int), pages ...int) {
		lists = append(lists, list{name, query, pages})
	}
	for _, column := range []string{"iccid", "imsi", "msisdn"} {
		add("all by "+column, func(n int) (string, int) {
			return "?order_by=" + column + "&order_direction=" + []string{"asc", "desc"}[n%2], total
		}, 1, farPage, lastPage)
	}
	add("of a pool with all, by msisdn", func(int) (string, int) { return "/pool/" + pool + "/iccid?order_by=msisdn", total }, 1, farPage, lastPage)
	// As in fill, whose SIMs have different orders by ICCID, IMSI and MSISDN.
	imsi := func(n int) string { return fmt.Sprintf("23415%010d", n*7%total*7919%total) }
	add("imsi =", func(n int) (string, int) { return "?" + filtered("imsi", "=", imsi(n)), 1 }, 1)
	add("imsi starts_with, 100 found", func(n int) (string, int) { return "?" + filtered("imsi", "starts_with", imsi(n)[:13]), 100 }, 1)
	tenth := "23415" + strings.Repeat("0", 10-len(strconv.Itoa(total-1))) + "4" // the prefix of a tenth of the IMSIs
	add("imsi starts_with, a tenth found, by msisdn", func(int) (string, int) {
		return "?order_by=msisdn&" + filtered("imsi", "starts_with", tenth), total / 10
	}, 1, 1+total/10/pageSize/2, lastPage)
	add("imsi like, all found, by msisdn", func(int) (string, int) { return "?order_by=msisdn&" + filtered("imsi", "like", "234%"), total }, 1, farPage, lastPage)
	add("imsi !=", func(n int) (string, int) { return "?" + filtered("imsi", "!=", imsi(n)), total - 1 }, 1, farPage, lastPage)
	return lists
}

func filtered(column, operator, value string) string {
	return url.Values{"filters[" + column + "][operator]": {operator}, "filters[" + column + "][value]": {value}}.Encode()
}

// fill inserts count SIMs of the first account into a pool, or into none if pool is empty. It
// repeats the columns of the store because deploy must not import the store
// (docs/architecture.md).
func (g *gateway) fill(ctx context.Context, count int, pool string) error {
	driver, url, tidy := "sqlite", filepath.Join(g.dir, "penstock.db")+"?_pragma=busy_timeout(60000)", "PRAGMA wal_checkpoint"
	if g.postgres != nil { // as autovacuum would
		driver, url, tidy = "pgx", servers.PostgresURL(g.postgres.Addr), "VACUUM (ANALYZE)"
	}
	db, err := sql.Open(driver, url)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	insert := fmt.Sprintf(`
		INSERT INTO sim (
		  account, iccid, imsi, msisdn, pool, subscriber, state, requested, job, service_4g, service_5g,
		  pin, pin2, puk, puk2, monthly, warning, cap, recipients, detached
		)
		WITH RECURSIVE number (i) AS (
		  SELECT CAST(0 AS BIGINT)
		  UNION ALL
		  SELECT i + 1
		  FROM number
		  WHERE i + 1 < %[1]d
		)
		SELECT 1, CAST(8944000000000000000 + i AS TEXT), CAST(234150000000000 + i * 7919 %% %[1]d AS TEXT), CAST(447000000000 + i * 104729 %% %[1]d AS TEXT),
		  '%[2]s', '', 'active', 'active', '', 1, 0, '1234', '5678', '12345678', '87654321', 0, 0, 'none', '', ''
		FROM number`, count, pool)
	const countRow = `
		INSERT INTO sim_count (account, list, n)
		SELECT account, 'sim', count(*)
		FROM sim
		GROUP BY account`
	for _, statement := range []string{insert, countRow, tidy} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// pages requests a page of a list pagesPerRound times and checks the total and the count of each
// answer.
func (g *gateway) pages(ctx context.Context, l list, number int) (outcome, error) {
	return timed(pagesPerRound, func(n int) error {
		query, total := l.query(n)
		page := number
		if page == lastPage {
			page = (total + pageSize - 1) / pageSize
		}
		query = fmt.Sprintf("%s&page=%d&per_page=%d", query, page, pageSize)
		var answer json.RawMessage
		if err := call(ctx, http.DefaultClient, http.MethodGet, g.url("/v3/mno"+query), accountToken, "", &answer); err != nil {
			return err
		}
		if want := fmt.Appendf(nil, `"total":%d,"count":%d}}`, total, min(pageSize, total-(page-1)*pageSize)); !bytes.HasSuffix(answer, want) {
			return fmt.Errorf("%s: %.200s … %s, want %s", query, answer, answer[max(0, len(answer)-100):], want)
		}
		return nil
	})
}
