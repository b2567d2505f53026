package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// What a page of a list of SIMs may take.
const (
	aimFirstPages = 100 * time.Millisecond // one of the first 1,000
	aimLastPage   = 500 * time.Millisecond
)

const (
	pageSize    = 100 // SIMs
	farPage     = 1000
	pagesARound = 40
	lastPage    = 0 // stands for the number of the last page
)

// lists are the measurements of lists.
type lists struct {
	sims  int
	pages []listed
}

// listed is a kind of page and its rounds.
type listed struct {
	page
	rounds []outcome
}

// page is a kind of page. query returns the n-th request, without the page, and how
// many SIMs it finds.
type page struct {
	name   string
	number int // lastPage: the last one
	query  func(n int) (query string, total int)
}

// aim is what the page may take.
func (p page) aim() time.Duration {
	if p.number == lastPage {
		return aimLastPage
	}
	return aimFirstPages
}

// pages are the pages that are requested, of the list of the account and of a pool that
// has all its SIMs.
func pages(acct simAccount, pool string) []page {
	var pages []page
	add := func(name string, query func(n int) (string, int), numbers ...int) {
		for _, number := range numbers {
			label := name + ", page " + strconv.Itoa(number)
			if number == lastPage {
				label = name + ", last page"
			}
			pages = append(pages, page{label, number, query})
		}
	}
	for _, column := range []string{"iccid", "imsi", "msisdn"} {
		add("all by "+column, func(n int) (string, int) {
			return "?order_by=" + column + "&order_direction=" + []string{"asc", "desc"}[n%2], acct.n
		}, 1, farPage, lastPage)
	}
	add("of a pool with all, by msisdn", func(int) (string, int) {
		return "/pool/" + pool + "/iccid?order_by=msisdn", acct.n
	}, 1, farPage, lastPage)
	add("imsi =", func(n int) (string, int) {
		return "?" + filtered("imsi", "=", acct.imsi(n*7%acct.n)), 1
	}, 1)
	add("imsi starts_with, 100 found", func(n int) (string, int) {
		v := acct.imsi(n * 7 % acct.n)
		return "?" + filtered("imsi", "starts_with", v[:len(v)-2]), 100
	}, 1)
	add("imsi starts_with, 100 found, by msisdn", func(n int) (string, int) {
		v := acct.imsi(n * 7 % acct.n)
		return "?order_by=msisdn&" + filtered("imsi", "starts_with", v[:len(v)-2]), 100
	}, 1)
	tenth := func(int) (string, int) {
		return "?order_by=msisdn&" + filtered("imsi", "starts_with", acct.tenth("23415", 10)), acct.n / 10
	}
	add("imsi starts_with, a tenth found, by msisdn", tenth, 1, 1+acct.n/10/pageSize/2, lastPage)
	add("imsi like, all found, by msisdn", func(int) (string, int) {
		return "?order_by=msisdn&" + filtered("imsi", "like", "234%"), acct.n
	}, 1, farPage, lastPage)
	add("imsi !=", func(n int) (string, int) {
		return "?" + filtered("imsi", "!=", acct.imsi(n*7%acct.n)), acct.n - 1
	}, 1, farPage, lastPage)
	iccid, msisdn := acct.tenth("8944", 15), acct.tenth("447", 9)
	both := acct.both(iccid, msisdn)
	add("iccid and msisdn starts_with, a tenth each", func(int) (string, int) {
		return "?" + filtered("iccid", "starts_with", iccid) + "&" + filtered("msisdn", "starts_with", msisdn), both
	}, 1, lastPage)
	return pages
}

// tenth is what a tenth of the values of a column begin with: those are a head and
// a number of so many digits.
func (acct simAccount) tenth(head string, digits int) string {
	return head + strings.Repeat("0", digits-len(strconv.Itoa(acct.n-1))) + "4"
}

// both returns how many SIMs have an ICCID and an MSISDN that begin so.
func (acct simAccount) both(iccid, msisdn string) (n int) {
	for i := range acct.n {
		if strings.HasPrefix(acct.iccid(i), iccid) && strings.HasPrefix(acct.msisdn(i), msisdn) {
			n++
		}
	}
	return n
}

func filtered(column, operator, value string) string {
	return url.Values{"filters[" + column + "][operator]": {operator}, "filters[" + column + "][value]": {value}}.Encode()
}

// measure requests every kind of page.
func (l *lists) measure(d *daemon, acct simAccount, pool string, s settings) error {
	client := newClient(1)
	defer client.CloseIdleConnections()
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // what this program collects is not measured
	for _, p := range pages(acct, pool) {
		kind := listed{page: p}
		for round := range s.rounds + 1 {
			took, err := p.run(d, client, acct)
			if err != nil {
				return err
			}
			if round > 0 { // the first one warms up
				kind.rounds = append(kind.rounds, took)
			}
		}
		l.pages = append(l.pages, kind)
	}
	return nil
}

// run requests a page for the time of a round.
func (p page) run(d *daemon, client *http.Client, acct simAccount) (outcome, error) {
	queries, totals := make([]string, pagesARound), make([]int, pagesARound)
	for n := range queries {
		queries[n], totals[n] = p.query(n)
	}
	var body bytes.Buffer
	return timed(pagesARound, func(n int) error {
		number, total := p.number, totals[n]
		if number == lastPage {
			number = (total + pageSize - 1) / pageSize
		}
		return d.page(client, &body, acct, fmt.Sprintf("%s&page=%d&per_page=%d", queries[n], number, pageSize), total, min(pageSize, total-(number-1)*pageSize))
	})
}

// print prints a row for each kind of page.
func (l *lists) print(say func(format string, args ...any), row func(cells ...any)) {
	say("\nan account with %d SIMs, pages of %d, answered over HTTP\n\n", l.sims, pageSize)
	defer row()
	row("medians of the rounds", "p50", "p99", "aim")
	for _, p := range l.pages {
		row(p.name, took(p.rounds, p50), took(p.rounds, p99), "≤ "+p.aim().String())
	}
}
