package failures

import (
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

func startLoad(g *e2e.Gateway) *e2e.Load {
	l := &e2e.Load{
		G: g, From: time.Now().UTC().Add(-12 * time.Hour).Truncate(time.Second), Quit: make(chan struct{}),
		Frames: map[string]map[string]float64{}, Texts: map[string]bool{}, Refused: map[string]int{},
	}
	body := e2e.Fixture(g.T, "chirpstack/up.json")
	for c := range e2e.Connections {
		l.Work.Go(func() { l.Repeat(func(n int) { l.Frame(body, c, n) }) })
		l.Work.Go(func() { l.Repeat(func(n int) { l.Message(c, n) }) })
	}
	return l
}
