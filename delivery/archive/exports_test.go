package archive

import (
	"context"
	"errors"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestConcurrentCallersShareOneRun(t *testing.T) {
	e := NewExports()
	t.Cleanup(func() { _ = e.Close() })
	release, runs := make(chan struct{}), 0
	export := func(context.Context) (int64, error) { runs++; <-release; return 7, nil }
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		if _, err := e.Do(cancelled, "a", export); relay.KindOf(err) != relay.KindUnavailable {
			t.Fatalf("got the error %v, want unavailable", err)
		}
	}
	close(release)
	relaytest.Equal(t, "the result", relaytest.Must(e.Do(t.Context(), "a", export))(t), 7)
	relaytest.Equal(t, "the number of runs", runs, 1)
	errBroken := errors.New("broken")
	if _, err := e.Do(t.Context(), "a", func(context.Context) (int64, error) { return 0, errBroken }); !errors.Is(err, errBroken) {
		t.Errorf("a second run returned %v, want its own error", err)
	}
}
