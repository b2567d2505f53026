package archive

import (
	"context"
	"errors"
	"testing"

	"github.com/penstock/penstock/relay"
)

func TestAWorkIsDoneOnceHoweverManyWait(t *testing.T) {
	w := NewExports(1)
	t.Cleanup(func() { _ = w.Close() })
	gate, runs := make(chan struct{}), 0
	work := func(context.Context) (int64, error) { runs++; <-gate; return 7, nil }
	left, leave := context.WithCancel(t.Context())
	leave()
	for range 3 {
		if _, err := w.Do(left, "a", work); relay.KindOf(err) != relay.KindUnavailable {
			t.Fatal(err)
		}
	}
	close(gate)
	if n, err := w.Do(t.Context(), "a", work); n != 7 || err != nil || runs != 1 {
		t.Errorf("%d, %v after %d runs", n, err, runs)
	}
	broken := errors.New("broken")
	if _, err := w.Do(t.Context(), "a", func(context.Context) (int64, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("what was done is not forgotten: %v", err)
	}
}
