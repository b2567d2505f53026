package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// The kinds of what is sent.
const (
	ofChirpStack  = "frames of ChirpStack"
	ofThings      = "frames of The Things Stack"
	ofLORIOT      = "frames of LORIOT"
	ofGeneric     = "generic readings"
	ofReadings    = "readings over REST"
	ofTexts       = "SMS over HTTP"
	ofJoined      = "SMS of three parts over HTTP"
	ofSMPP        = "SMS over SMPP"
	ofSends       = "REST sends with reports"
	ofSOAP        = "SOAP sends"
	ofScheduled   = "scheduled sends"
	ofDeleted     = "deleted sends"
	ofUses        = "SIM CDRs"
	ofCalls       = "SIP CDRs"
	ofJobs        = "SIM jobs"
	ofClaims      = "claims"
	ofSubscribers = "subscribers"
)

// kind is a way in.
type kind struct {
	name   string
	weight int // of the rate
	send   func(ctx context.Context, n int)
}

// kinds are all ways in.
func (s *site) kinds() []kind {
	return []kind{
		{ofChirpStack, 20, s.sendChirpStack}, {ofThings, 10, s.sendThings}, {ofLORIOT, 10, s.sendLORIOT}, {ofGeneric, 10, s.sendGeneric}, {ofReadings, 8, s.sendReading},
		{ofTexts, 10, s.sendText}, {ofJoined, 3, s.sendJoined}, {ofSMPP, 8, s.sendSMPP},
		{ofSends, 8, s.sendREST}, {ofSOAP, 3, s.sendSOAP}, {ofScheduled, 2, s.sendScheduled}, {ofDeleted, 1, s.sendDeleted},
		{ofUses, 5, s.sendUse}, {ofCalls, 5, s.sendCall}, {ofJobs, 1, s.sendJob}, {ofClaims, 1, s.sendClaim}, {ofSubscribers, 1, s.sendSubscriber},
	}
}

// workersEach is how many items of a kind may be under way.
const workersEach = 4

// runLoad sends items of every kind at the rate of the settings until s.done is
// closed, and returns once everything under way is answered.
func (s *site) runLoad(ctx context.Context) {
	total := 0
	for _, k := range s.kinds() {
		total += k.weight
	}
	var workers sync.WaitGroup
	for _, k := range s.kinds() {
		pause := time.Duration(float64(time.Second) * float64(workersEach*total) / (float64(k.weight) * s.settings.rate))
		next := new(atomic.Int64)
		for range workersEach {
			workers.Go(func() { s.work(ctx, k, pause, next) })
		}
	}
	workers.Wait()
}

// work sends one item after the other.
func (s *site) work(ctx context.Context, k kind, pause time.Duration, next *atomic.Int64) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
			k.send(ctx, int(next.Add(1)-1))
		}
	}
}
