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

// find searches for all items over the API, at the sink and at the SMSC.
func (s *site) find(ctx context.Context) (findings, error) {
	f := findings{}
	for _, find := range []func(context.Context, findings) error{
		s.findReadings, s.findArrivals, s.findMessages, s.findUses, s.findJobs, s.findClaims, s.findDevices,
	} {
		if err := find(ctx, f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// reconcile compares the ledger with the found items, kind by kind.
func (s *site) reconcile(ctx context.Context) ([]verdict, error) {
	f, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	var verdicts []verdict
	for _, k := range s.kinds() {
		verdicts = append(verdicts, s.ledger.reconcile(k.name, f))
	}
	return append(verdicts, s.ledger.reconcile(deletedDeviceKind, f), s.ledger.reconcile(probeKind, f), s.ledger.reconcile(newDeviceKind, f), s.ledger.reconcile(noticeKind, f), s.ledger.reconcile(creditKind, f)), nil
}

func clean(verdicts []verdict) bool {
	for _, v := range verdicts {
		if !v.clean() {
			return false
		}
	}
	return true
}

// settle waits until the gateways are idle and all items are found and done, for at most
// s.settings.settle. Meanwhile it calls operate.
func (s *site) settle(ctx context.Context) (verdicts []verdict, settleTime time.Duration, err error) {
	start := time.Now()
	for _, g := range s.gateways {
		if err := g.ready(ctx); err != nil {
			return nil, 0, err
		}
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		late := time.Since(start) > s.settings.settle
		idle, reason := s.idle(ctx)
		if idle || late {
			verdicts, err = s.reconcile(ctx)
		}
		if err == nil && idle && clean(verdicts) || late || ctx.Err() != nil {
			if late && !idle {
				s.note("the gateways did not become idle: " + reason)
			}
			return verdicts, time.Since(start), err
		}
		_ = s.operate(ctx) // the next round repeats steps that fail
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// idle reports whether no item is in progress. Otherwise reason describes an item or an error.
func (s *site) idle(ctx context.Context) (ok bool, reason string) {
	if !s.smsc.idle() {
		return false, "the SMSC has messages to deliver"
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
			return false, fmt.Sprintf("a delivery is %s: %v", state, list.Data[0])
		}
	}
	return true, ""
}

// lag returns the number of entries that a gateway has accepted but not processed, or -1 if the
// gateway does not answer.
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

// operate does the work of an operator after faults: it replays quarantined events, closes breakers
// and resends messages with unknown parts.
func (s *site) operate(ctx context.Context) error {
	if _, err := s.replay(ctx); err != nil {
		return err
	}
	var breakers struct{ Data []struct{ Endpoint string } }
	if err := s.admin(ctx, http.MethodGet, "/admin/breakers", "", &breakers); err != nil {
		return err
	}
	for _, b := range breakers.Data {
		if a := s.call(ctx, http.MethodDelete, "/admin/breakers/"+b.Endpoint, "", "Authorization", "Bearer "+adminToken); !a.ok() && a.status != http.StatusNotFound {
			return s.read(a, nil)
		}
	}
	return s.resend(ctx)
}

// replay replays quarantined events and returns their number.
func (s *site) replay(ctx context.Context) (count int, err error) {
	var list struct{ Data []struct{ ID string } }
	if err := s.admin(ctx, http.MethodGet, "/admin/events?state=quarantined&limit=1", "", &list); err != nil || len(list.Data) == 0 {
		return 0, err
	}
	var replayed struct{ Count int }
	err = s.admin(ctx, http.MethodPost, "/admin/events/replay", `{"state":"quarantined"}`, &replayed)
	s.replayed += replayed.Count
	return replayed.Count, err
}
