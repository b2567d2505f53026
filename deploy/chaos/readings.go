package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// devicesEach is how many devices send what a kind of readings sends; each has a
// reading a second of the past.
const devicesEach = 40

// readingKinds are those whose items are readings, with the identifiers of their
// devices.
func readingKinds() map[string]func(n int) string {
	return map[string]func(n int) string{
		ofChirpStack: func(n int) string { return fmt.Sprintf("70b3d57e01%06x", n%devicesEach) },
		ofThings:     func(n int) string { return fmt.Sprintf("70b3d57e02%06x", n%devicesEach) },
		ofLORIOT:     func(n int) string { return fmt.Sprintf("70b3d57e03%06x", n%devicesEach) },
		ofGeneric:    func(n int) string { return fmt.Sprintf("generic-%d", n%devicesEach) },
		ofReadings:   func(n int) string { return fmt.Sprintf("rest-%d", n%devicesEach) },
		ofProbes:     func(n int) string { return fmt.Sprintf("probe-%d", n%devicesEach) },
		ofNew:        func(n int) string { return fmt.Sprintf("new-%d", n%devicesEach) },
	}
}

// readings are the items of a kind of readings. The n-th has the value n, which
// says its device and its time as well, so that millions cost a byte each.
type readings struct {
	device func(n int) string
	base   time.Time

	mu      sync.Mutex
	items   []readingState
	strange []string // seen, and never sent, or seen twice
}

// readingState is the state of a reading.
type readingState byte

const (
	offered readingState = 1 << iota
	acked
	found
)

func newReadings(base time.Time) map[string]*readings {
	all := map[string]*readings{}
	for kind, device := range readingKinds() {
		all[kind] = &readings{device: device, base: base}
	}
	return all
}

func (r *readings) at(n int) time.Time { return r.base.Add(time.Duration(n/devicesEach) * time.Second) }

// id names the n-th reading.
func (r *readings) id(n int) string {
	return readingID(r.device(n), r.at(n).Format(time.DateTime), float64(n))
}

func readingID(device, at string, value float64) string {
	return fmt.Sprintf("%s at %s = %v", device, at, value)
}

// mark adds to what is known of the n-th reading.
func (r *readings) mark(n int, state readingState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.items) <= n {
		r.items = append(r.items, 0)
	}
	r.items[n] |= state
}

// next is the first reading of a device that was not offered.
func (r *readings) next(device int) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n = device; n < len(r.items) && r.items[n] != 0; n += devicesEach {
	}
	return n
}

// see notes that a device has a reading.
func (r *readings) see(device, at string, value float64) {
	n := int(value)
	r.mu.Lock()
	defer r.mu.Unlock()
	if value != math.Trunc(value) || n < 0 || n >= len(r.items) || r.items[n]&(offered|found) != offered || r.device(n) != device || r.at(n).Format(time.DateTime) != at {
		r.strange = append(r.strange, readingID(device, at, value))
		return
	}
	r.items[n] |= found
}

// missing reports whether a reading of a device that was acknowledged in some
// seconds has not been seen. What was seen of them is forgotten then, to look again.
func (r *readings) missing(device, from, to int) (any bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	each := func(do func(n int)) {
		for n := from*devicesEach + device; n < min(to*devicesEach, len(r.items)); n += devicesEach {
			do(n)
		}
	}
	each(func(n int) { any = any || r.items[n]&(acked|found) == acked })
	if any {
		each(func(n int) { r.items[n] &^= found })
	}
	return any
}

// seconds is for how many seconds the devices have readings.
func (r *readings) seconds() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return (len(r.items) + devicesEach - 1) / devicesEach
}

// reconcile compares what was sent with what was seen.
func (r *readings) reconcile(kind string) verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := verdict{kind: kind, unaccounted: slices.Compact(slices.Sorted(slices.Values(r.strange)))}
	for n, state := range r.items {
		if state == 0 {
			continue
		}
		v.sent++
		switch {
		case state&acked != 0:
			v.acked++
			if state&found == 0 {
				v.lost = append(v.lost, r.id(n))
			}
		case state&found != 0:
			v.unansweredFound++
		}
	}
	return v
}

// findReadings looks for the readings of every device.
func (s *site) findReadings(ctx context.Context, _ findings) error {
	for _, r := range s.ledger.readings {
		for device := range devicesEach {
			if err := s.findDevice(ctx, r, device); err != nil {
				return err
			}
		}
	}
	return nil
}

// readingsAtOnce is how many seconds are asked for at once.
const readingsAtOnce = 900

func (s *site) findDevice(ctx context.Context, r *readings, device int) error {
	name, id := r.device(device), ""
	for from := 0; from < r.seconds(); from += readingsAtOnce {
		if !r.missing(device, from, from+readingsAtOnce) {
			continue
		}
		if id == "" {
			var known struct{ ID string }
			a := s.call(ctx, http.MethodGet, "/iot/devices/identifier/"+name, "")
			if a.status == http.StatusNotFound || a.status == http.StatusUnprocessableEntity {
				return nil
			}
			if err := s.read(a, &known); err != nil {
				return err
			}
			id = known.ID
		}
		if err := s.findSpan(ctx, r, name, id, s.base.Add(time.Duration(from)*time.Second)); err != nil {
			return err
		}
	}
	return nil
}

// findSpan looks for the readings of a device from a moment on.
func (s *site) findSpan(ctx context.Context, r *readings, name, id string, from time.Time) error {
	q := url.Values{"limit": {"1000"}, "startDate": {from.Format(time.DateTime)}, "endDate": {from.Add((readingsAtOnce - 1) * time.Second).Format(time.DateTime)}}
	var list struct {
		Data []struct {
			ReadingDate string `json:"reading_date"`
			Value       json.Number
		}
	}
	if err := s.load(ctx, "/iot/devices/"+id+"/readings?"+q.Encode(), &list); err != nil {
		return err
	}
	for _, one := range list.Data {
		value, _ := one.Value.Float64()
		r.see(name, one.ReadingDate, value)
	}
	return nil
}
