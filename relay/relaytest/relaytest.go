// Package relaytest has what the tests of all folders share: comparing values with
// their difference, waiting for a condition, a clock that tests set.
//
// It imports nothing of the program, so that the tests of any package may use it.
package relaytest

import (
	"bytes"
	"flag"
	"net/url"
	"os"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Patience is the time for which a test waits for what happens asynchronously: long enough
// for a busy machine.
const Patience = 5 * time.Minute

// maxPause is the longest pause between two looks of Eventually: many tests wait at the
// same time, and each look costs what the others wait for.
const maxPause = 100 * time.Millisecond

// ManyAtOnce runs the tests of a package that wait for servers more than they compute:
// eight parallel tests at a time, whatever the number of processors is.
func ManyAtOnce(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// Diff returns the difference between two values, "" if there is none: lines of want
// begin with -, lines of got with +. Unexported fields are compared, too, and values
// with an Equal method, such as time.Time, by that method.
func Diff(got, want any, options ...cmp.Option) string {
	options = append(options, cmp.Exporter(func(reflect.Type) bool { return true }))
	return cmp.Diff(want, got, options...)
}

// Equal fails the test, and lets it go on, unless got is want; what names the value.
func Equal[T any](t testing.TB, label string, got, want T, options ...cmp.Option) {
	t.Helper()
	if diff := Diff(got, want, options...); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", label, diff)
	}
}

// SameOrigin fails the test unless a URL has the scheme, the host and the user of another
// one and no fragment, and returns it parsed.
func SameOrigin(t testing.TB, got, base string) *url.URL {
	t.Helper()
	u := Must(url.Parse(got))(t)
	origin := func(u *url.URL) []string { return []string{u.Scheme, u.Host, u.User.String()} }
	Equal(t, "scheme, host and user of "+got, origin(u), origin(Must(url.Parse(base))(t)))
	Equal(t, "the fragment of "+got, u.Fragment, "")
	return u
}

// NoError ends the test at the first error that is not nil.
func NoError(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Must returns a function that returns the value, and ends the test if there was an
// error instead: relaytest.Must(os.ReadFile(name))(t).
func Must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// Eventually waits until a condition holds, and ends the test with what was seen last
// if it does not within five minutes; what names the condition.
func Eventually(t testing.TB, label string, holds func() (seen any, ok bool)) {
	t.Helper()
	deadline := time.After(Patience)
	for pause := time.Millisecond; ; pause = min(2*pause, maxPause) {
		seen, ok := holds()
		if ok {
			return
		}
		select {
		case <-time.After(pause):
		case <-deadline:
			t.Fatalf("timeout: %s; seen last: %v", label, seen)
		}
	}
}

// Clock is a clock that stands still until a test moves it. It is safe for concurrent
// use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows a time.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock and returns the new time.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

// Buffer collects what is written to it. It is safe for concurrent use.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to the text.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns the text.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Has reports whether the text contains some words.
func (b *Buffer) Has(words string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Contains(b.text.Bytes(), []byte(words))
}

// Take returns the text and empties the buffer.
func (b *Buffer) Take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.text.String()
	b.text.Reset()
	return text
}
