package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// herd is an account and its SIMs, n of them.
type herd struct {
	account int
	token   string
	n       int
	both    int // SIMs whose ICCID and MSISDN both begin as a tenth of them do
}

func newHerd(account int, token string, n int) herd {
	h := herd{account: account, token: token, n: n}
	iccid, msisdn := h.tenth("8944", 15), h.tenth("447", 9)
	for i := range n {
		if strings.HasPrefix(h.iccid(i), iccid) && strings.HasPrefix(h.msisdn(i), msisdn) {
			h.both++
		}
	}
	return h
}

// The numbers of the i-th SIM: three orders of the same SIMs.
func (h herd) iccid(i int) string  { return fmt.Sprintf("8944%015d", i) }
func (h herd) imsi(i int) string   { return fmt.Sprintf("23415%010d", i*7919%h.n) }
func (h herd) msisdn(i int) string { return fmt.Sprintf("447%09d", i*104729%h.n) }

func (h herd) key(i int) string { return fmt.Sprintf("{a%d}:sim:%s", h.account, h.iccid(i)) }

// smallHerd is what a large one is compared with.
const smallHerd = 1000

// sims measures pages of an account's SIMs beside a bare pipelined read of as
// many hashes, and beside the same pages of a small account.
func sims(ctx context.Context, p *peers, s settings, r *report) error {
	if s.embedded || s.sims == 0 {
		return nil
	}
	d, err := p.daemon(ctx, s)
	if err != nil {
		return err
	}
	defer d.stop()
	c, err := (&redisPool{addr: d.redis}).conn()
	if err != nil {
		return err
	}
	large, small := newHerd(1, d.token, s.sims), newHerd(2, "small-token", smallHerd)
	r.lists = &lists{sims: s.sims}
	before, err := c.usedMemory()
	if err != nil {
		return err
	}
	if err := c.fill(large); err != nil {
		return err
	}
	after, err := c.usedMemory()
	if err != nil {
		return err
	}
	r.lists.memory = float64(after-before) / float64(s.sims)
	if err := c.fill(small); err != nil {
		return err
	}
	return r.lists.measure(d, c, large, small, s)
}

// fillPiece is how many SIMs go in one write.
const fillPiece = 1000

// fill writes SIMs straight into Redis, as the gateway's store would write them.
func (c *redisConn) fill(h herd) error {
	var b []byte
	for from := 0; from < h.n; from += fillPiece {
		to := min(from+fillPiece, h.n)
		b = b[:0]
		sets := [3][]string{}
		for i := range sets {
			sets[i] = []string{"ZADD", fmt.Sprintf("{a%d}:sims:%s", h.account, [3]string{"iccid", "imsi", "msisdn"}[i])}
		}
		for i := from; i < to; i++ {
			iccid, imsi, msisdn := h.iccid(i), h.imsi(i), h.msisdn(i)
			b = command(b, "HSET", h.key(i), "4g", "1", "imsi", imsi, "msisdn", msisdn, "pin", "1234", "pin2", "5678",
				"puk", "12345678", "puk2", "87654321", "state", "active", "v", "1")
			sets[0] = append(sets[0], "0", iccid+"\x1f"+imsi+"\x1f"+msisdn)
			sets[1] = append(sets[1], "0", imsi+"\x1f"+iccid+"\x1f"+msisdn)
			sets[2] = append(sets[2], "0", msisdn+"\x1f"+iccid+"\x1f"+imsi)
		}
		for _, set := range sets {
			b = command(b, set...)
		}
		if err := c.tell(b, to-from+len(sets)); err != nil {
			return err
		}
	}
	return nil
}

// command appends a command as Redis reads it.
func command(b []byte, words ...string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b
}

// tell sends commands that answer with a number each.
func (c *redisConn) tell(commands []byte, answers int) error {
	sent := make(chan error, 1)
	go func() { _, err := c.Write(commands); sent <- err }()
	for range answers {
		if _, err := c.length(':'); err != nil {
			return errors.Join(err, <-sent)
		}
	}
	return <-sent
}

// usedMemory is what Redis holds, in bytes.
func (c *redisConn) usedMemory() (int64, error) {
	if _, err := c.Write(command(nil, "INFO", "memory")); err != nil {
		return 0, err
	}
	text, err := c.text()
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines([]byte(text)) {
		if value, ok := bytes.CutPrefix(line, []byte("used_memory:")); ok {
			return strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
		}
	}
	return 0, fmt.Errorf("redis does not tell its memory: %.100q", text)
}

// readHashes reads the hashes of SIMs in one pipeline.
func (c *redisConn) readHashes(h herd, from, count int) error {
	var b []byte
	for i := range count {
		b = command(b, "HGETALL", h.key((from+i)%h.n))
	}
	if _, err := c.Write(b); err != nil {
		return err
	}
	for range count {
		n, err := c.length('*')
		if err != nil || n == 0 {
			return errors.Join(err, fmt.Errorf("a hash of %d fields", n))
		}
		fields := make(map[string]string, n/2)
		for range n / 2 {
			name, err := c.text()
			if err != nil {
				return err
			}
			if fields[name], err = c.text(); err != nil {
				return err
			}
		}
	}
	return nil
}

// page asks the gateway for a page and checks the total and the count. The body is
// read into memory that is used again: what this program collects is not measured.
func (d *daemon) page(client *http.Client, body *bytes.Buffer, h herd, query string, total, count int) error {
	body.Reset()
	req, err := http.NewRequest(http.MethodGet, "http://"+d.addr+"/v3/mno?"+query, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("X-Auth-Token", h.token)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = body.ReadFrom(resp.Body)
	want := fmt.Appendf(nil, `"total":%d,"count":%d}}`, total, count)
	if err != nil || resp.StatusCode != http.StatusOK || !bytes.HasSuffix(bytes.TrimSpace(body.Bytes()), want) {
		got := body.Bytes()
		return fmt.Errorf("%s: %s: %.200s … %s, want %s: %w", query, resp.Status, got, got[max(0, len(got)-100):], want, err)
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
	slices.Sort(took)
	return outcome{count: int64(times), took: time.Since(start), p50: quantile(took, 0.50), p99: quantile(took, 0.99)}, nil
}
