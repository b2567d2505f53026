package cache

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// turns bounds how many marks of frames are kept: a span ends early once it holds half
// as many. So it is with the embedded server, whose memory is the gateway's own. The
// zero value bounds nothing, and its spans are those of the clock.
type turns struct {
	limit int // marks in a span

	mu       sync.Mutex
	lastSpan span
	marks    int // in it
	// keys hold the marks of the last span, before those of the one before it, ended
	// those that are no longer read.
	keys, result, ended map[string]bool
}

// at returns the span in which marks are set at a time.
func (t *turns) at(now time.Time, length time.Duration) span {
	if t.limit == 0 {
		return spanAt(now, length)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.marks >= t.limit || t.lastSpan.length != length || now.Sub(t.lastSpan.start) >= length {
		if t.ended == nil {
			t.ended = make(map[string]bool)
		}
		maps.Copy(t.ended, t.result)
		t.result, t.keys, t.marks = t.keys, make(map[string]bool), 0
		t.lastSpan = span{number: t.lastSpan.number + 1, start: now, length: length}
	}
	return t.lastSpan
}

// count notes marks that were set under keys, and returns the keys to be deleted.
func (t *turns) count(keys []string, marks int) (ended []string) {
	if t.limit == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range keys {
		t.keys[key] = true
		delete(t.ended, key) // its name came again
	}
	t.marks += marks
	ended = slices.Collect(maps.Keys(t.ended))
	clear(t.ended)
	return ended
}

// again returns keys that could not be deleted.
func (t *turns) again(keys []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range keys {
		t.ended[key] = !t.keys[key] && !t.result[key]
	}
	maps.DeleteFunc(t.ended, func(_ string, ended bool) bool { return !ended })
}
