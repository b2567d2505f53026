package archive

import (
	"context"
	"errors"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestConcurrentCallersShareOneRun(t *testing.T) {
	w := NewExports()
	t.Cleanup(func() { _ = w.Close() })
	gate, runs := make(chan struct{}), 0
	work := func(context.Context) (int64, error) { runs++; <-gate; return 7, nil }
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		if _, err := w.Do(cancelled, "a", work); relay.KindOf(err) != relay.KindUnavailable {
			t.Fatalf("got the error %v, want unavailable", err)
		}
	}
	close(gate)
	relaytest.Equal(t, "the result", relaytest.Must(w.Do(t.Context(), "a", work))(t), 7)
	relaytest.Equal(t, "the number of runs", runs, 1)
	broken := errors.New("broken")
	if _, err := w.Do(t.Context(), "a", func(context.Context) (int64, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("a second run returned %v, want its own error", err)
	}
}
