// Package relaytest provides helpers for tests: comparing values, waiting for a condition, a clock
// that tests set, and processes and servers that tests share.
//
// It imports no other package of the module, so that the tests of any package can use it.
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

// Patience is the time limit for waiting on a condition. It is long enough for a busy machine.
const Patience = 5 * time.Minute

// maxPause is the longest pause between two checks of Eventually. Many tests wait at the same
// time, and each check slows down the others.
const maxPause = 100 * time.Millisecond

// ManyAtOnce runs the tests of a package with eight parallel tests, independent of the number of
// processors. It is for tests that mostly wait for servers.
func ManyAtOnce(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// Diff returns the difference between two values; empty if they are equal. Lines of want begin
// with -, lines of got with +. Diff also compares unexported fields, and compares values with an
// Equal method, such as time.Time, by that method.
func Diff(got, want any, options ...cmp.Option) string {
	options = append(options, cmp.Exporter(func(reflect.Type) bool { return true }))
	return cmp.Diff(want, got, options...)
}

// Equal fails the test, without ending it, unless got equals want. label names the value.
func Equal[T any](t testing.TB, label string, got, want T, options ...cmp.Option) {
	t.Helper()
	if diff := Diff(got, want, options...); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", label, diff)
	}
}

// SameOrigin parses a URL. It fails the test if the scheme, the host or the user differs from
// base, or if the URL has a fragment.
func SameOrigin(t testing.TB, got, base string) *url.URL {
	t.Helper()
	u := Must(url.Parse(got))(t)
	origin := func(u *url.URL) []string { return []string{u.Scheme, u.Host, u.User.String()} }
	Equal(t, "scheme, host and user of "+got, origin(u), origin(Must(url.Parse(base))(t)))
	Equal(t, "the fragment of "+got, u.Fragment, "")
	return u
}

// NoError ends the test if an error is not nil.
func NoError(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Must returns a function that returns value, or ends the test if err is not nil:
// relaytest.Must(os.ReadFile(name))(t).
func Must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// Eventually waits until a condition holds. After Patience it ends the test and reports the last
// state. label names the condition.
func Eventually(t testing.TB, label string, holds func() (state any, ok bool)) {
	t.Helper()
	deadline := time.After(Patience)
	for pause := time.Millisecond; ; pause = min(2*pause, maxPause) {
		state, ok := holds()
		if ok {
			return
		}
		select {
		case <-time.After(pause):
		case <-deadline:
			t.Fatalf("timeout while waiting for: %s; last state: %v", label, state)
		}
	}
}

// Clock is a clock that only a test advances. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that is set to now.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d and returns the new time.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

// Buffer collects text. It is safe for concurrent use.
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

// Has reports whether the text contains words.
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
