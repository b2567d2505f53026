package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// find looks for everything that was sent.
func (s *site) find(ctx context.Context) (findings, error) {
	f := findings{}
	for _, look := range []func(context.Context, findings) error{
		s.findReadings, s.findArrivals, s.findMessages, s.findUses, s.findJobs, s.findClaims, s.findDevices,
	} {
		if err := look(ctx, f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// reconcile compares the ledger with what is found, kind by kind.
func (s *site) reconcile(ctx context.Context) ([]verdict, error) {
	f, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	var verdicts []verdict
	for _, k := range s.kinds() {
		verdicts = append(verdicts, s.ledger.reconcile(k.name, f))
	}
	return append(verdicts, s.ledger.reconcile(ofRemoved, f), s.ledger.reconcile(ofProbes, f), s.ledger.reconcile(ofNew, f), s.ledger.reconcile(ofTold, f), s.ledger.reconcile(ofCredit, f)), nil
}

func clean(verdicts []verdict) bool {
	for _, v := range verdicts {
		if !v.clean() {
			return false
		}
	}
	return true
}

// settle waits until everything is there and done, but not for ever, and does what
// an operator does meanwhile: closes breakers of endpoints that work again, and has
// parts sent again that the SMSC never got.
func (s *site) settle(ctx context.Context) (verdicts []verdict, took time.Duration, err error) {
	began := time.Now()
	for _, g := range s.gateways {
		if err := g.ready(ctx); err != nil {
			return nil, 0, err
		}
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		late := time.Since(began) > s.settings.settle
		quiet, waiting := s.quiet(ctx)
		if quiet || late {
			verdicts, err = s.reconcile(ctx)
		}
		if err == nil && quiet && clean(verdicts) || late || ctx.Err() != nil {
			if late && !quiet {
				s.note("it did not become quiet: " + waiting)
			}
			return verdicts, time.Since(began), err
		}
		_ = s.operate(ctx) // what does not work now is done in the next round
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// quiet reports whether nothing is under way, or what is.
func (s *site) quiet(ctx context.Context) (ok bool, waiting string) {
	if !s.smsc.idle() {
		return false, "the SMSC has something to deliver"
	}
	for _, g := range s.gateways {
		if n := lag(ctx, g); n != 0 {
			return false, fmt.Sprintf("%s has %d entries to process", g.name, n)
		}
	}
	for _, state := range []string{"queued", "retrying"} {
		var list struct {
			Data []struct{ ID, Kind, Reason string }
		}
		if err := s.admin(ctx, http.MethodGet, "/admin/deliveries?limit=1&state="+state, "", &list); err != nil {
			return false, err.Error()
		}
		if len(list.Data) > 0 {
			return false, fmt.Sprintf("deliveries are %s, such as %v", state, list.Data[0])
		}
	}
	return true, ""
}

// lag is the number of entries that a gateway has accepted and not processed, -1 if it does
// not say.
func lag(ctx context.Context, g *gateway) int {
	status, text := servers.Get(ctx, "http://"+g.addr+"/metrics")
	if status == 0 {
		return -1
	}
	sum := 0
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(name, "penstock_entries_pending{") {
			n, _ := strconv.ParseFloat(value, 64)
			sum += int(n)
		}
	}
	return sum
}

// operate does what an operator does after faults.
func (s *site) operate(ctx context.Context) error {
	if _, err := s.replay(ctx); err != nil {
		return err
	}
	var breakers struct{ Data []struct{ Endpoint string } }
	if err := s.admin(ctx, http.MethodGet, "/admin/breakers", "", &breakers); err != nil {
		return err
	}
	for _, b := range breakers.Data {
		if a := s.call(ctx, http.MethodDelete, "/admin/breakers/"+b.Endpoint, "", "Authorization", "Bearer "+adminToken); !a.done() && a.status != http.StatusNotFound {
			return s.read(a, nil)
		}
	}
	return s.resend(ctx)
}

// replay has events processed again that a refusal has quarantined, and returns how
// many there are.
func (s *site) replay(ctx context.Context) (count int, err error) {
	var list struct{ Data []struct{ ID string } }
	if err := s.admin(ctx, http.MethodGet, "/admin/events?state=quarantined&limit=1", "", &list); err != nil || len(list.Data) == 0 {
		return 0, err
	}
	var told struct{ Count int }
	err = s.admin(ctx, http.MethodPost, "/admin/events/replay", `{"state":"quarantined"}`, &told)
	s.replayed += told.Count
	return told.Count, err
}
