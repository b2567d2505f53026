package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// query is one thing that is asked of the fleet: of the gateway, and of what it
// is held against. Both make the request for a device and a day of the month.
type query struct {
	name, floor   string
	gateway, bare func(m fleetDevice, day int) *http.Request
	conns         int
	p99           bool    // what the ratio is of; else the median
	most          float64 // of the ratio
}

// queryRound is a query measured on both sides.
type queryRound struct{ gateway, bare outcome }

// answers are the rounds of a query.
type answers struct {
	query
	rounds []queryRound
}

// ratio is the median of the rounds' ratios.
func (a answers) ratio() float64 {
	return median(a.rounds, func(r queryRound) float64 {
		if a.p99 {
			return float64(r.gateway.p99) / float64(r.bare.p99)
		}
		return float64(r.gateway.p50) / float64(r.bare.p50)
	})
}

// The most that reading may take, as ratios to the floors.
const (
	mostLatest = 3.0
	mostQuery  = 1.5
)

// queries are those that are measured.
func (f *fleet) queries(hgetall string) []query {
	moment := func(t time.Time) string { return url.QueryEscape(t.Format(time.DateTime)) }
	get := func(m fleetDevice, path string) *http.Request {
		req := f.request("http://" + f.daemon.addr + "/iot/devices/" + m.id + "/readings" + path)
		req.Header.Set("Authorization", f.daemon.token)
		return req
	}
	return []query{
		{
			name: "latest readings of a device", floor: "bare HGETALL over HTTP", conns: 8, p99: true, most: mostLatest,
			gateway: func(m fleetDevice, _ int) *http.Request { return get(m, "/latest") },
			bare:    func(m fleetDevice, _ int) *http.Request { return f.request("http://" + hgetall + "/" + m.id) },
		},
		{
			name: "a day of raw readings", floor: "the same of InfluxDB", conns: 4, most: mostQuery,
			gateway: func(m fleetDevice, day int) *http.Request {
				from := f.day(day)
				return get(m, "?startDate="+moment(from)+"&endDate="+moment(from.Add(24*time.Hour-time.Second)))
			},
			bare: func(m fleetDevice, day int) *http.Request {
				from := f.day(day)
				return f.ask(m, "SELECT value, text FROM temperature", from, from.Add(24*time.Hour-1), " GROUP BY * ORDER BY time DESC LIMIT 1000")
			},
		},
		{
			name: "a month aggregated by hour", floor: "the same of InfluxDB", conns: 4, most: mostQuery,
			gateway: func(m fleetDevice, _ int) *http.Request {
				return get(m, "/aggregate?type=ave&granularity=hour&startDate="+moment(f.first)+"&endDate="+moment(f.first.Add(month-time.Second)))
			},
			bare: func(m fleetDevice, _ int) *http.Request {
				return f.ask(m, "SELECT mean(value) FROM temperature", f.first, f.first.Add(month-1), " GROUP BY sensor_id, time(3600s, 0s) fill(none) LIMIT 100001")
			},
		},
	}
}

func (f *fleet) day(n int) time.Time { return f.first.Add(time.Duration(n) * 24 * time.Hour) }

func (f *fleet) request(target string) *http.Request {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, target, http.NoBody)
	if err != nil {
		panic(err) // an address of this program's own making
	}
	return req
}

// ask is a query of InfluxQL about a device, as the gateway's store asks it.
func (f *fleet) ask(m fleetDevice, selection string, from, to time.Time, rest string) *http.Request {
	text := selection + " WHERE account = $account AND device_id = $device AND time >= " + strconv.FormatInt(from.UnixNano(), 10) +
		" AND time <= " + strconv.FormatInt(to.UnixNano(), 10) + rest
	q := url.Values{"db": {"bench"}, "epoch": {"ns"}, "q": {text}, "params": {`{"account":"1","device":"` + m.id + `"}`}}
	return f.request(f.daemon.influx() + "/query?" + q.Encode())
}

// measure runs every query on both sides, in turns.
func (f *fleet) measure(ctx context.Context, p *peers, s settings, r *report) error {
	hgetall, err := p.bare(ctx, "-redis", f.daemon.beside.redis.Addr)
	if err != nil {
		return err
	}
	defer servers.End(hgetall.proc)
	for _, q := range f.queries(hgetall.addr) {
		a := answers{query: q}
		for round := range s.rounds + 1 {
			bare, err := f.run(ctx, q, q.bare, s)
			if err != nil {
				return fmt.Errorf("%s: %w", q.floor, err)
			}
			gateway, err := f.run(ctx, q, q.gateway, s)
			if err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			if round > 0 { // the first one warms up
				a.rounds = append(a.rounds, queryRound{gateway, bare})
			}
		}
		r.answers = append(r.answers, a)
	}
	return nil
}

// run makes requests of one side for a fixed time. Every answer has to be 200
// and to hold a number of the device.
func (f *fleet) run(ctx context.Context, q query, of func(fleetDevice, int) *http.Request, s settings) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, s.seconds/2)
	defer cancel()
	client := newClient(q.conns)
	defer client.CloseIdleConnections()
	var (
		mu    sync.Mutex
		all   []time.Duration
		first error
		wg    sync.WaitGroup
	)
	start := time.Now()
	for range q.conns {
		wg.Go(func() {
			own, err := f.connection(ctx, client, of)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
			if first == nil {
				first = err
			}
		})
	}
	wg.Wait()
	slices.Sort(all)
	return outcome{count: int64(len(all)), took: time.Since(start), p50: quantile(all, 0.50), p99: quantile(all, 0.99)}, first
}

func (f *fleet) connection(ctx context.Context, client *http.Client, of func(fleetDevice, int) *http.Request) (took []time.Duration, err error) {
	var body bytes.Buffer
	for ctx.Err() == nil {
		body.Reset()
		req := of(f.measuring(rand.IntN(len(f.members))), rand.IntN(30))
		start := time.Now()
		resp, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		_, err = body.ReadFrom(resp.Body)
		_ = resp.Body.Close()
		took = append(took, time.Since(start))
		if err != nil || resp.StatusCode != http.StatusOK || !bytes.ContainsAny(body.Bytes(), f.holds) {
			return nil, fmt.Errorf("%s: %.300s: %w", resp.Status, body.Bytes(), err)
		}
	}
	return took, nil
}
