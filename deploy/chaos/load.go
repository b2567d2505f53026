package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// The names of the kinds of items.
const (
	chirpStackKind    = "frames of ChirpStack"
	thingsStackKind   = "frames of The Things Stack"
	genericKind       = "generic readings"
	probeKind         = "readings during restarts"
	newDeviceKind     = "readings of new devices"
	textKind          = "SMS over HTTP"
	joinedKind        = "SMS of three parts over HTTP"
	smppKind          = "SMS over SMPP"
	sendKind          = "REST sends with reports"
	scheduledKind     = "scheduled sends"
	deletedSendKind   = "deleted sends"
	usageKind         = "SIM CDRs"
	jobKind           = "SIM jobs"
	claimKind         = "claims"
	deviceKind        = "devices"
	deletedDeviceKind = "deleted devices"
)

// kind is a kind of items that the load sends.
type kind struct {
	name   string
	weight int // share of the rate, relative to the other kinds with the same rate
	send   func(ctx context.Context, n int)
	frame  bool // sent at settings.frames instead of settings.rate
	direct bool // written to the database at once, without the journal
}

// kinds returns the kinds that the load sends all the time.
func (s *site) kinds() []kind {
	return []kind{
		{chirpStackKind, 20, s.sendChirpStack, true, false},
		{thingsStackKind, 20, s.sendThingsStack, true, false},
		{genericKind, 10, s.sendGeneric, false, false},
		{textKind, 10, s.sendText, false, false},
		{joinedKind, 3, s.sendJoined, false, false},
		{smppKind, 8, s.sendSMPP, false, false},
		{sendKind, 8, s.sendREST, false, true},
		{scheduledKind, 2, s.sendScheduled, false, true},
		{deletedSendKind, 1, s.sendDeleted, false, true},
		{usageKind, 5, s.sendUse, false, false},
		{jobKind, 1, s.sendJob, false, true},
		{claimKind, 1, s.sendClaim, false, true},
		{deviceKind, 1, s.sendDevice, false, true},
	}
}

// The maximum number of concurrent items of a kind.
const (
	workersEach  = 4
	workersFrame = 16
)

// runLoad sends items of every kind at the rates of the settings until s.done is
// closed, and returns once no request is in progress.
func (s *site) runLoad(ctx context.Context) {
	weights := map[bool]int{}
	for _, k := range s.kinds() {
		weights[k.frame] += k.weight
	}
	var wg sync.WaitGroup
	for _, k := range s.kinds() {
		workers, rate := workersEach, s.settings.rate
		if k.frame {
			workers, rate = workersFrame, s.settings.frames
		}
		pause := time.Duration(float64(time.Second) * float64(workers*weights[k.frame]) / (float64(k.weight) * rate))
		counter := new(atomic.Int64)
		for range workers {
			wg.Go(func() { s.work(ctx, k, pause, counter) })
		}
	}
	wg.Wait()
}

// work sends an item of a kind after every pause until the load ends.
func (s *site) work(ctx context.Context, k kind, pause time.Duration, counter *atomic.Int64) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
			s.sendOne(ctx, k, int(counter.Add(1)-1))
		}
	}
}

// sendOne sends the n-th item. An item of a direct kind waits while a restore locks s.direct.
func (s *site) sendOne(ctx context.Context, k kind, n int) {
	if k.direct {
		s.direct.RLock()
		defer s.direct.RUnlock()
	}
	k.send(ctx, n)
}
