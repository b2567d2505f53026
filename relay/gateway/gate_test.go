package gateway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestAGateStopsItsFunctionWhileItIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := NewGate()
		runs, running := 0, false
		ended := make(chan error, 1)
		go func() {
			ended <- g.Run(ctx, func(ctx context.Context) error {
				runs, running = runs+1, true
				<-ctx.Done()
				running = false
				return nil
			})
		}()
		for _, step := range []struct {
			name   string
			change func()
			runs   int
			open   bool
		}{
			{"a new gate is closed", func() {}, 0, false},
			{"opened", g.Open, 1, true},
			{"opened again", g.Open, 1, true},
			{"closed", g.Close, 1, false},
			{"closed again", g.Close, 1, false},
			{"opened after it was closed", g.Open, 2, true},
		} {
			step.change()
			synctest.Wait()
			if runs != step.runs || running != step.open || g.Closed() == step.open {
				t.Errorf("%s: runs %d, running %v, closed %v; want %d runs, open %v", step.name, runs, running, g.Closed(), step.runs, step.open)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v after its context ended, want nil", err)
		}
	})
}

func TestAGateReturnsTheErrorOfItsFunction(t *testing.T) {
	g, fault := NewGate(), errors.New("fault")
	g.Open()
	if err := g.Run(t.Context(), func(context.Context) error { return fault }); !errors.Is(err, fault) {
		t.Errorf("got %v, want %v", err, fault)
	}
}
