package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// What reading lists of SIMs may take.
const (
	mostPage   = 5.0 // p99, of that of the bare read of the same SIMs
	mostGrowth = 2.0 // median, of that with a small account
	mostWalk   = time.Second
)

// pageSize is how many SIMs a page has.
const pageSize = 100

// lists are the measurements of lists.
type lists struct {
	sims  int
	bytes float64 // on disk for a SIM
	pages []listed
}

// listed is a kind of page and its rounds: with the large and the small account, and
// of the bare reads of the SIMs that the pages of the large one showed.
type listed struct {
	page
	large, small, bare []outcome
}

// page is a kind of page: the query, the total and the count of the n-th request
// for an account.
type page struct {
	name  string
	walks bool // may take longer
	query func(acct simAccount, n int) (query string, total, count int)
}

// pages are the pages that are requested.
func pages() []page {
	var out []page
	for _, column := range []string{"iccid", "imsi", "msisdn"} {
		for i, place := range []string{"first", "middle", "last"} {
			out = append(out, page{name: place + " page by " + column, query: func(acct simAccount, n int) (string, int, int) {
				number := []int{1, acct.n / pageSize / 2, acct.n / pageSize}[i]
				return fmt.Sprintf("order_by=%s&order_direction=%s&page=%d", column, []string{"asc", "desc"}[n%2], number), acct.n, pageSize
			}})
		}
	}
	for _, column := range []string{"iccid", "imsi", "msisdn"} {
		out = append(out,
			page{name: column + " =", query: func(acct simAccount, n int) (string, int, int) {
				return filtered(column, "=", acct.value(column, n*7%acct.n)), 1, 1
			}},
			page{name: column + " starts_with, 100 found", query: func(acct simAccount, n int) (string, int, int) {
				v := acct.value(column, n*7%acct.n)
				return filtered(column, "starts_with", v[:len(v)-2]), 100, pageSize
			}},
			page{name: column + " like, any page of all", query: func(acct simAccount, n int) (string, int, int) {
				return filtered(column, "like", acct.value(column, 0)[:3]+"%") + fmt.Sprintf("&page=%d", 1+n*31%(acct.n/pageSize)), acct.n, pageSize
			}},
			page{name: column + " !=, any page", walks: true, query: func(acct simAccount, n int) (string, int, int) {
				return filtered(column, "!=", acct.value(column, n*7%acct.n)) + fmt.Sprintf("&page=%d", 1+n*31%(acct.n/pageSize)), acct.n - 1, -1
			}},
		)
	}
	out = append(out, page{name: "iccid and msisdn starts_with, a tenth each", walks: true, query: func(acct simAccount, _ int) (string, int, int) {
		iccid, msisdn := acct.tenth("8944", 15), acct.tenth("447", 9)
		return filtered("iccid", "starts_with", iccid) + "&" + filtered("msisdn", "starts_with", msisdn), acct.both, min(acct.both, pageSize)
	}})
	return append(out, page{name: "imsi starts_with, a tenth found, middle page by msisdn", walks: true, query: func(acct simAccount, _ int) (string, int, int) {
		return filtered("imsi", "starts_with", acct.tenth("23415", 10)) + fmt.Sprintf("&order_by=msisdn&page=%d", max(1, acct.n/10/pageSize/2)), acct.n / 10, pageSize
	}})
}

// tenth is what a tenth of the values of a column begin with: those are a head and
// a number of so many digits.
func (acct simAccount) tenth(head string, digits int) string {
	return head + strings.Repeat("0", digits-len(strconv.Itoa(acct.n-1))) + "4"
}

// value is a column of the i-th SIM.
func (acct simAccount) value(column string, i int) string {
	switch column {
	case "imsi":
		return acct.imsi(i)
	case "msisdn":
		return acct.msisdn(i)
	}
	return acct.iccid(i)
}

func filtered(column, operator, value string) string {
	return url.Values{"filters[" + column + "][operator]": {operator}, "filters[" + column + "][value]": {value}}.Encode()
}

// pagesARound is how often a page is asked for in a round.
const pagesARound = 400

// measure requests every page in turns with a bare read of the same SIMs.
func (l *lists) measure(ctx context.Context, d *daemon, c *pgx.Conn, large, small simAccount, s settings) error {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // what this program collects is not measured
	for _, p := range pages() {
		one := listed{page: p}
		var shown [][]string // the ICCIDs of each request's page
		if _, err := p.run(d, client, large, func(body []byte) { shown = append(shown, iccidsOf(body)) }); err != nil {
			return err
		}
		for round := range s.rounds + 1 {
			bare, err := timed(pagesARound, func(n int) error { return readSIMs(ctx, c, large, shown[n%len(shown)]) })
			if err != nil {
				return err
			}
			var took [2]outcome
			for i, acct := range []simAccount{large, small} {
				if took[i], err = p.run(d, client, acct, nil); err != nil {
					return err
				}
			}
			if round > 0 { // the first one warms up
				one.bare, one.large, one.small = append(one.bare, bare), append(one.large, took[0]), append(one.small, took[1])
			}
		}
		l.pages = append(l.pages, one)
	}
	return nil
}

// run requests a page of one account for the time of a round, and shows the answers.
func (p page) run(d *daemon, client *http.Client, acct simAccount, show func(body []byte)) (outcome, error) {
	times := pagesARound
	if p.walks && acct.n > smallAccount {
		times = pagesARound / 20
	}
	var body bytes.Buffer
	return timed(times, func(n int) error {
		query, total, count := p.query(acct, n)
		if count < 0 { // the last page lacks one
			count = pageSize
			if number := 1 + n*31%(acct.n/pageSize); number == acct.n/pageSize {
				count--
			}
		}
		err := d.page(client, &body, acct, query+fmt.Sprintf("&per_page=%d", pageSize), total, count)
		if err == nil && show != nil {
			show(body.Bytes())
		}
		return err
	})
}

var iccidMember = regexp.MustCompile(`"iccid":"(\d+)"`)

// iccidsOf returns the ICCIDs of a page.
func iccidsOf(body []byte) []string {
	var out []string
	for _, m := range iccidMember.FindAllSubmatch(body, -1) {
		out = append(out, string(m[1]))
	}
	return out
}

// print prints a row a page.
func (l *lists) print(say func(format string, args ...any), row func(cells ...any)) {
	say("\nan account with %d SIMs, pages of %d; the floor is one prepared statement that reads the SIMs of the same page by primary key\n"+
		"on disk for a SIM without pool and subscriber, with its indexes: %.0f bytes\n\n", l.sims, pageSize, l.bytes)
	defer row()
	row("medians of the rounds", "p50", "p99", "floor's p50", "p99", "p50 / floor's", "p99 / floor's", "aim", "p50 / p50 of 1,000 SIMs", "aim")
	for _, one := range l.pages {
		of := func(q func(outcome) float64) string { return ratio(median(one.large, q) / median(one.bare, q)) }
		growth := median(one.large, p50) / median(one.small, p50)
		limit, most := "≤ "+ratio(mostPage), "≤ "+ratio(mostGrowth)
		if one.walks {
			limit, most = "< "+mostWalk.String(), ""
		}
		row(one.name, took(one.large, p50), took(one.large, p99), took(one.bare, p50), took(one.bare, p99), of(p50), of(p99), limit, ratio(growth), most)
	}
}
