package iot_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/catalog/catalogtest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// later returns a frame some minutes after the previous one.
func (g *gateway) later(n int, v map[string]any) iot.Arrival {
	g.now = g.now.Add(time.Minute)
	return g.frame(fmt.Sprint("n1-u", n), v)
}

func TestTheNextFrameFollowsWhatChanged(t *testing.T) {
	g := newGateway(t)
	g.stored(g.later(1, values("temperature", 1.0)))
	both := values("temperature", 2.0, "door", "open")

	if _, err := g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "state", Key: "door"}); err != nil {
		t.Fatal(err)
	}
	g.stored(g.later(2, both))
	if got := g.latest(); !slices.Contains(got, "door=open") {
		t.Errorf("after a key was mapped: %q", got)
	}

	sensors, err := g.Sensors(t.Context(), 1, g.device(1).ID, "temperature")
	relaytest.NoError(t, err)
	_, err = g.ChangeSensor(t.Context(), 1, sensors[0].ID, iot.SensorChange{Offset: new(100.0)})
	relaytest.NoError(t, err)
	g.stored(g.later(3, both))
	if got := g.latest(); !slices.Contains(got, "temperature=102") {
		t.Errorf("after a sensor was calibrated: %q", got)
	}

	relaytest.NoError(t, g.records.DeleteDecoder(t.Context(), 1, "d1"))
	out := g.ingest(g.later(4, both))[0]
	relaytest.Equal(t, "the reason after the decoder was deleted", out.Refused, "decoder d1 of device "+eui+" is not known")

	relaytest.NoError(t, g.records.CreateDecoder(t.Context(), 1, decoder("d1", "temperature")), g.records.DeleteDevice(t.Context(), 1, g.device(1).ID))
	g.stored(g.later(5, both))
	if got := g.latest(); !slices.Equal(got, []string{"temperature=2"}) {
		t.Errorf("after it was deleted and came back: %q", got)
	}
}

func TestADeviceWithoutADecoderTakesTheOneNamedLater(t *testing.T) {
	g := newGateway(t)
	bare := g.later(1, values("temperature", 1.0))
	bare.DecoderID = ""
	if out := g.ingest(bare)[0]; !strings.Contains(out.Refused, "has no decoder") {
		t.Errorf("without a decoder: the reason is %q", out.Refused)
	}
	unknown := g.later(2, values("temperature", 1.0))
	unknown.DecoderID = "d9"
	relaytest.Equal(t, "the reason with an unknown decoder", g.ingest(unknown)[0].Refused, "decoder d9 is not known")
	if n := len(g.readings.radio); n != 2 {
		t.Errorf("radio data of %d frames, want that of both", n)
	}
	g.stored(g.later(3, values("temperature", 3.0)))
	relaytest.Equal(t, "the assigned decoder", g.device(1).DecoderID, "d1")
	relaytest.NoError(t, g.records.CreateDecoder(t.Context(), 1, decoder("d2", "humidity")))
	other := g.later(4, values("temperature", 4.0))
	other.DecoderID = "d2"
	g.stored(other)
	relaytest.Equal(t, "the decoder, which a webhook with another does not replace", g.device(1).DecoderID, "d1")
	g.stored(bare)
}

func TestFramesMayCreateOnlySoManyDevices(t *testing.T) {
	g := newGateway(t)
	g.o.MaxDevices = 3
	g.start()
	var batch []iot.Arrival
	for i := range 5 {
		a := g.frame(fmt.Sprint("n1-u", i), values("temperature", 1.0))
		a.Frame.Identifier = fmt.Sprint("tank", i)
		batch = append(batch, a)
	}
	for i, out := range g.ingest(batch...) {
		if (out.Refused != "") != (i >= 3) || i >= 3 && !strings.Contains(out.Refused, "the account has 3 devices") {
			t.Errorf("device %d: refused with the reason %q", i, out.Refused)
		}
	}
	g.stored(batch[0])
}

func TestImportingManyAsksOnce(t *testing.T) {
	g := newGateway(t)
	var batch []iot.Arrival
	for i := range 100 {
		a := g.frame(fmt.Sprint("n1-u", i), values("temperature", 1.0))
		a.Frame.Identifier = fmt.Sprint("tank", i)
		if i%2 == 1 {
			a.DecoderID = "d9"
		}
		batch = append(batch, a)
	}
	g.reads.Store(0)
	g.ingest(batch...)
	// The versions, the devices, their number, the locations, each of the two decoders, and
	// the number of sensors.
	relaytest.Equal(t, "the number of reads", g.reads.Load(), 7)
}

// Each transaction syncs the disk, so several devices are created in one. A device that cannot be
// created does not prevent the creation of the others.
func TestAFleetIsCreatedInFewTransactions(t *testing.T) {
	g := newGateway(t)
	taken := probe()
	taken.Identifier = "a840416b2c0000fa"
	if _, err := g.CreateDevice(t.Context(), 2, taken); err != nil {
		t.Fatal(err)
	}
	g.writes.Store(0)
	var batch []iot.Arrival
	for i := range 300 {
		a := g.frame(fmt.Sprint("n1-u", i), values("temperature", 1.0))
		a.Frame.Identifier, a.Frame.IsDevEUI = fmt.Sprintf("a840416b2c%06x", i), true
		batch = append(batch, a)
	}
	for i, out := range g.ingest(batch...) {
		if refused := strings.Contains(out.Refused, "claimed by another account"); refused != (i == 0xfa) || !refused && len(out.Points) != 1 {
			t.Errorf("device %d: refused with the reason %q, %d points", i, out.Refused, len(out.Points))
		}
	}
	// Two transactions of 100 devices, then a third one that fails, then one per device. The device
	// whose identifier is taken is tried three times.
	if n := g.writes.Load(); n != 2+1+100+2 {
		t.Errorf("%d transactions", n)
	}
	if devices, err := g.Devices(t.Context(), 1); err != nil || len(devices) != 299 {
		t.Errorf("%d devices, %v", len(devices), err)
	}
}

func TestTwoGatewaysThatImportTheSameDevicesAgree(t *testing.T) {
	g := newGateway(t)
	other := iot.New(g.records, g.cache, g.readings, catalogtest.Compile, g.o)
	services := []*iot.Service{g.Service, g.Service, other, other}
	outs := make([][]iot.Outcome, len(services))
	var wg sync.WaitGroup
	for n, s := range services {
		wg.Go(func() {
			var batch []iot.Arrival
			for i := range 60 {
				a := g.frame(fmt.Sprintf("n%d-u%d", n, i), values("temperature", float64(n)))
				a.Frame.Identifier = fmt.Sprint("tank", (i*7+n*13)%60)
				batch = append(batch, a)
			}
			slices.SortFunc(batch, func(a, b iot.Arrival) int { return strings.Compare(a.Frame.Identifier, b.Frame.Identifier) })
			var err error
			if outs[n], err = s.Ingest(t.Context(), batch); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for n := range outs {
		for i, out := range outs[n] {
			if out.Refused != "" || len(out.Points) != 1 {
				t.Fatalf("batch %d, frame %d: refused %q, %d points; want 1", n, i, out.Refused, len(out.Points))
			}
			relaytest.Equal(t, fmt.Sprintf("device and sensor of frame %d in batch %d", i, n),
				[]string{out.DeviceID, out.Points[0].SensorID}, []string{outs[0][i].DeviceID, outs[0][i].Points[0].SensorID})
		}
	}
	if devices, err := g.Devices(t.Context(), 1); err != nil || len(devices) != 60 {
		t.Errorf("%d devices, %v", len(devices), err)
	}
}

// Mappings, calibrations and deletions during a batch may change the outcome of a frame, but cause
// no error.
func TestChangesInTheMiddleOfBatches(t *testing.T) {
	g := newGateway(t)
	g.stored(g.frame("n1-u0", values("temperature", 1.0)))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for n := range 2 {
		wg.Go(func() {
			for i := range 30 {
				a := g.frame(fmt.Sprintf("n1-u%d.%d", n, i), values("temperature", 1.0, fmt.Sprint("k", i%5), 2.0))
				out, err := g.Ingest(t.Context(), []iot.Arrival{a, a})
				// If a device is deleted between two steps, the batch is processed again.
				if err != nil && relay.KindOf(err) != relay.KindNotFound && relay.KindOf(err) != relay.KindUnavailable {
					t.Error(err)
				}
				for _, o := range out {
					if o.Refused != "" {
						t.Error(o.Refused)
					}
				}
			}
		})
	}
	wg.Go(func() {
		defer close(done)
		for i := range 5 {
			if _, err := g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "state", Key: fmt.Sprint("k", i)}); err != nil {
				t.Error(err)
			}
			if d, err := g.DeviceByIdentifier(t.Context(), 1, eui); err == nil {
				if err := g.records.DeleteDevice(t.Context(), 1, d.ID); err != nil {
					t.Error(err)
				}
			}
		}
	})
	<-done
	wg.Wait()
	g.stored(g.frame("n1-last", values("k0", 0.0, "k1", 1.0, "k2", 2.0, "k3", 3.0, "k4", 4.0)))
	if got := g.latest(); len(got) < 5 {
		t.Errorf("%q", got)
	}
}

func TestTenAddSensorsToOneDecoderAndNoneIsLost(t *testing.T) {
	g := newGateway(t)
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if _, err := g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "state", Key: fmt.Sprint("k", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if d, err := g.Decoder(t.Context(), 1, "d1"); err != nil || len(d.Sensors) != 12 {
		t.Errorf("%d mappings, %v", len(d.Sensors), err)
	}
}

// loseDevices deletes all devices, as the restore of an old backup does.
func (g *gateway) loseDevices() {
	g.t.Helper()
	for _, table := range []string{"device", "sensor", "device_claim"} {
		relaytest.NoError(g.t, g.db.Run(g.t.Context(), table, "DELETE FROM "+table))
	}
}

func TestAFrameCreatesItsCachedDeviceAgainIfTheDatabaseHasLostIt(t *testing.T) {
	both := values("temperature", 1.0, "humidity", 2.0)
	want := []string{"humidity=2", "temperature=1"}
	t.Run("after the caches were emptied", func(t *testing.T) {
		g := newGateway(t)
		g.stored(g.later(1, both))
		g.loseDevices()
		relaytest.NoError(t, g.db.Invalidate(t.Context()))
		g.stored(g.later(2, both))
		got := g.latest()
		slices.Sort(got)
		relaytest.Equal(t, "the latest values", got, want)
	})
	t.Run("when a write finds no device", func(t *testing.T) {
		g := newGateway(t)
		first := g.later(1, both)
		first.DecoderID = ""
		g.ingest(first)
		g.loseDevices()
		next := g.later(2, both)
		if _, err := g.Ingest(t.Context(), []iot.Arrival{next}); relay.KindOf(err) != relay.KindUnavailable {
			t.Errorf("the batch returned %v, want an error that has it repeated", err)
		}
		g.stored(next)
		got := g.latest()
		slices.Sort(got)
		relaytest.Equal(t, "the latest values", got, want)
	})
}
