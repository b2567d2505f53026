package iot

import (
	"context"
	"slices"
	"sync"

	"github.com/penstock/penstock/relay/account"
)

// guesses remembers which sensor types a device had when its readings were asked
// for last. Dashboards ask for the same devices again and again; so the store of
// readings can be asked at the same time as the records, which say whether the
// guess was right.
type guesses struct {
	mu    sync.Mutex
	types map[guess][]string
}

type guess struct {
	acct   account.ID
	device string
}

// maxGuesses is how many devices are remembered before all are forgotten.
const maxGuesses = 50_000

func (g *guesses) of(acct account.ID, deviceID string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.types[guess{acct, deviceID}]
}

func (g *guesses) keep(acct account.ID, deviceID string, types []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.types == nil || len(g.types) >= maxGuesses {
		g.types = make(map[guess][]string)
	}
	g.types[guess{acct, deviceID}] = types
}

// found is what a store of readings answered.
type found[T any] struct {
	rows []T
	err  error
}

// withRecords asks the records about a device and the store of readings for
// rows of the types that its sensors have; both at once when the types can be
// guessed. It returns relay.KindNotFound if there is no such device, and no rows
// if it has no sensors.
func withRecords[T any](ctx context.Context, s *Service, acct account.ID, deviceID string,
	ask func(ctx context.Context, types []string) ([]T, error),
) (rows []T, o Overview, types map[string]SensorType, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	guessed := s.guesses.of(acct, deviceID)
	early := make(chan found[T], 1)
	if len(guessed) > 0 {
		go func() {
			rows, err := ask(ctx, guessed)
			early <- found[T]{rows, err}
		}()
	}
	if o, types, err = s.overview(ctx, acct, deviceID); err != nil {
		return nil, o, nil, err
	}
	names := typesOf(o.Sensors)
	switch {
	case len(names) == 0:
		return nil, o, types, nil
	case slices.Equal(names, guessed):
		got := <-early
		return got.rows, o, types, got.err
	}
	s.guesses.keep(acct, deviceID, names)
	rows, err = ask(ctx, names)
	return rows, o, types, err
}
