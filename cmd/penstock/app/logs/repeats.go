package logs

import (
	"context"
	"hash/maphash"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Window is the time for which a fault is not written again.
const Window = 10 * time.Second

// maxFaults is the largest number of faults that are stored. Lines about other faults are always
// written.
const maxFaults = 10_000

// repeats stores the faults of the last Window. When the window of a repeated fault ends, the last
// suppressed line is written and another window begins.
type repeats struct {
	seed maphash.Seed

	mu     sync.Mutex
	faults map[uint64]*fault
	byEnd  []*fault // the faults in the order in which their windows end
	timer  *time.Timer
}

// fault is a line that was written within the last Window.
type fault struct {
	identity   uint64
	windowEnd  time.Time
	suppressed int
	handler    slog.Handler
	lastRecord slog.Record
	requests   []string // the ids of the first requests among the suppressed lines
}

// maxRequests is the largest number of request ids in a line. Users report these ids.
const maxRequests = 20

func newRepeats() *repeats {
	return &repeats{seed: maphash.MakeSeed(), faults: make(map[uint64]*fault)}
}

// suppress stores a line and reports whether it must not be written now.
func (r *repeats) suppress(identity uint64, handler slog.Handler, record slog.Record) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.faults[identity]; f != nil {
		f.suppressed++
		f.handler, f.lastRecord = handler, record.Clone()
		if id := requestID(record); id != "" && len(f.requests) < maxRequests {
			f.requests = append(f.requests, id)
		}
		return true
	}
	if len(r.faults) < maxFaults {
		r.openWindow(&fault{identity: identity})
	}
	return false
}

// openWindow begins the window of a fault.
func (r *repeats) openWindow(f *fault) {
	f.windowEnd, f.suppressed = time.Now().Add(Window), 0
	f.requests = nil
	r.faults[f.identity] = f
	r.byEnd = append(r.byEnd, f)
	if r.timer == nil {
		r.timer = time.AfterFunc(Window, r.expire)
	}
}

// expire closes the windows that have ended, and schedules the end of the next window.
func (r *repeats) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	n := 0
	for n < len(r.byEnd) && !r.byEnd[n].windowEnd.After(now) {
		n++
	}
	ended := r.byEnd[:n]
	r.byEnd = slices.Clone(r.byEnd[n:])
	for _, f := range ended {
		delete(r.faults, f.identity)
		if f.suppressed > 0 {
			f.write()
			r.openWindow(f)
		}
	}
	r.timer = nil
	if len(r.byEnd) > 0 {
		r.timer = time.AfterFunc(time.Until(r.byEnd[0].windowEnd), r.expire)
	}
}

// flush writes the suppressed lines, and drops all faults.
func (r *repeats) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	for _, f := range r.byEnd {
		if f.suppressed > 0 {
			f.write()
		}
	}
	r.timer, r.byEnd = nil, nil
	clear(r.faults)
}

// write writes the last line of a fault with the number and request ids of suppressed lines.
func (f *fault) write() {
	line := f.lastRecord
	if f.suppressed > 1 {
		line.AddAttrs(slog.Int("suppressed", f.suppressed-1))
		if len(f.requests) > 0 {
			line.AddAttrs(slog.String("request_ids", strings.Join(f.requests, " ")))
		}
	}
	_ = f.handler.Handle(context.Background(), line)
}

// requestID returns the request id of a line, or "" if the line has none.
func requestID(line slog.Record) (id string) {
	line.Attrs(func(a slog.Attr) bool {
		if a.Key == "request_id" {
			id = a.Value.String()
		}
		return id == ""
	})
	return id
}
