package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// simAccount is an account and its SIMs, n of them.
type simAccount struct {
	account int
	token   string
	n       int
	both    int // SIMs whose ICCID and MSISDN both begin as a tenth of them do
}

func newSIMAccount(account int, token string, n int) simAccount {
	acct := simAccount{account: account, token: token, n: n}
	iccid, msisdn := acct.tenth("8944", 15), acct.tenth("447", 9)
	for i := range n {
		if strings.HasPrefix(acct.iccid(i), iccid) && strings.HasPrefix(acct.msisdn(i), msisdn) {
			acct.both++
		}
	}
	return acct
}

// The numbers of the i-th SIM: three orders of the same SIMs.
func (acct simAccount) iccid(i int) string  { return fmt.Sprintf("8944%015d", i) }
func (acct simAccount) imsi(i int) string   { return fmt.Sprintf("23415%010d", i*7919%acct.n) }
func (acct simAccount) msisdn(i int) string { return fmt.Sprintf("447%09d", i*104729%acct.n) }

// smallAccount is compared with a large one.
const smallAccount = 1000

// sims measures pages of an account's SIMs beside a bare read of as many rows, and
// beside the same pages of a small account.
func sims(ctx context.Context, p *peers, s settings, r *report) error {
	if s.embedded || s.sims == 0 {
		return nil
	}
	d, err := p.daemon(ctx, s)
	if err != nil {
		return err
	}
	defer d.stop()
	c, err := servers.DialPostgres(ctx, d.beside.postgres.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	large, small := newSIMAccount(1, d.token, s.sims), newSIMAccount(2, "small-token-0123456", smallAccount)
	r.lists = &lists{sims: s.sims}
	if r.lists.bytes, err = fillBoth(ctx, c, large, small); err != nil {
		return err
	}
	return r.lists.measure(ctx, d, c, large, small, s)
}

// page requests a page of the gateway and checks the total and the count. The body is
// read into memory that is used again: what this program collects is not measured.
func (d *daemon) page(client *http.Client, body *bytes.Buffer, acct simAccount, query string, total, count int) error {
	body.Reset()
	req, err := http.NewRequest(http.MethodGet, "http://"+d.addr+"/v3/mno?"+query, http.NoBody)
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
