package iot_test

import (
	"testing"

	"github.com/penstock/penstock/decoders"
)

// Whoever counts what was heard counts frames, not counters or gateways, which
// not every network tells.
func TestEveryUplinkIsAFrameOfItsDevice(t *testing.T) {
	g := newGateway(t)
	bare := g.frame("r1", values("temperature", 20.0))
	status := g.frame("r2", nil)
	status.Frame.Kind, status.Frame.Battery = decoders.Status, new(50.0)
	unread := g.frame("r3", values("nobody maps", 1.0))
	join := g.frame("r4", nil)
	join.Frame.Kind = decoders.Join
	g.ingest(bare, status, unread, join)
	got := ""
	for _, u := range g.readings.radio {
		if u.Frame {
			got += "frame of " + u.Name + ", "
		} else {
			got += "no frame" + u.Name + ", "
		}
	}
	if got != "frame of probe, no frame, frame of probe, " {
		t.Errorf("got %s", got)
	}
}
