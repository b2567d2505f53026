package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// frames measures accepting and storing: a load of fixed length, and how long
// until the last frame of it can be read back.
func frames(ctx context.Context, p *peers, s settings, r *report) error {
	d, err := p.daemon(ctx, s)
	if err != nil {
		return err
	}
	defer d.stop()
	if err := warm(ctx, d, s); err != nil {
		return err
	}
	start, before, others, own := time.Now(), cpu(d.pid()), d.othersCPU(), cpu(os.Getpid())
	l := newLoad(d.addr, d.token, s)
	l.first = int64(s.devices)
	if err := l.run(ctx, s.seconds); err != nil {
		return err
	}
	r.accepted = l.result()
	r.storedInLoad = d.metric("penstock_processed_total{kind=\"uplink\"}") - int64(s.devices)
	if err := until(ctx, 2*time.Minute, "every frame processed", func() bool {
		return d.metric("penstock_lag{kind=\"uplink\"}") == 0
	}); err != nil {
		return err
	}
	r.storedIn = time.Since(start)
	r.accepted.cpu = cpu(d.pid()) - before
	r.others = d.othersCPU() - others
	r.client = cpu(os.Getpid()) - own
	r.memory = memory(d.pid())
	sent := r.accepted.count + int64(s.devices)
	refused := d.metric("penstock_set_aside_total{kind=\"uplink\"}")
	stored, err := d.countPoints(ctx)
	if err != nil {
		return err
	}
	r.reconcile("frames", sent, stored, refused)
	return nil
}

// warm sends one frame per device, so that the import of devices is not part of
// the measurement.
func warm(ctx context.Context, d *daemon, s settings) error {
	l := newLoad(d.addr, d.token, s)
	if err := l.send(ctx, int64(s.devices)); err != nil {
		return err
	}
	return until(ctx, time.Minute, "devices imported", func() bool {
		return d.metric("penstock_processed_total{kind=\"uplink\"}") == int64(s.devices)
	})
}

// countPoints asks the store itself.
func (d *daemon) countPoints(ctx context.Context) (int64, error) {
	if d.influx == "" {
		return d.countEmbedded(ctx)
	}
	q := url.Values{"db": {"bench"}, "q": {`SELECT count(value) FROM temperature`}}
	var answer struct {
		Results []struct {
			Series []struct{ Values [][]any }
		}
	}
	if err := getJSON(ctx, d.influx+"/query?"+q.Encode(), "", &answer); err != nil {
		return 0, err
	}
	if len(answer.Results) == 0 || len(answer.Results[0].Series) == 0 {
		return 0, errors.New("influxd has no points")
	}
	n, ok := answer.Results[0].Series[0].Values[0][1].(float64)
	if !ok {
		return 0, fmt.Errorf("influxd answered %v", answer)
	}
	return int64(n), nil
}

// countEmbedded trusts the gateway's own count, as nothing else reads its file
// while it runs.
func (d *daemon) countEmbedded(context.Context) (int64, error) {
	return d.metric("penstock_processed_total{kind=\"uplink\"}") - d.metric("penstock_set_aside_total{kind=\"uplink\"}"), nil
}

func getJSON(ctx context.Context, url, token string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return fmt.Errorf("%s: %s: %s", strings.SplitN(url, "?", 2)[0], resp.Status, b)
	}
	return json.NewDecoder(resp.Body).Decode(to)
}
