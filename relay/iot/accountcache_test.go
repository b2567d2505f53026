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

// nextFrame returns a frame that is received one minute after the previous one.
func (g *gateway) nextFrame(n int, v map[string]any) iot.Arrival {
	g.now = g.now.Add(time.Minute)
	return g.frame(fmt.Sprint("n1-u", n), v)
}

func TestTheNextFrameFollowsChangesOfDecoderAndSensor(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	temperatureAndDoor := values("temperature", 2.0, "door", "open")

	if _, err := g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "state", Key: "door"}); err != nil {
		t.Fatal(err)
	}
	g.mustStore(g.nextFrame(2, temperatureAndDoor))
	if got := g.latestValues(); !slices.Contains(got, "door=open") {
		t.Errorf("latest values after a key was mapped: %q, want door=open", got)
	}

	sensors, err := g.Sensors(t.Context(), 1, g.device(1).ID, "temperature")
	relaytest.NoError(t, err)
	_, err = g.ChangeSensor(t.Context(), 1, sensors[0].ID, iot.SensorChange{Offset: new(100.0)})
	relaytest.NoError(t, err)
	g.mustStore(g.nextFrame(3, temperatureAndDoor))
	if got := g.latestValues(); !slices.Contains(got, "temperature=102") {
		t.Errorf("latest values after a sensor was calibrated: %q, want temperature=102", got)
	}

	relaytest.NoError(t, g.records.DeleteDecoder(t.Context(), 1, "d1"))
	outcome := g.ingest(g.nextFrame(4, temperatureAndDoor))[0]
	relaytest.Equal(t, "the reason after the decoder was deleted", outcome.Refused, `decoder d1 of device "probe" is not known`)

	relaytest.NoError(t, g.records.CreateDecoder(t.Context(), 1, decoder("d1", "temperature")), g.records.DeleteDevice(t.Context(), 1, g.device(1).ID))
	g.mustStore(g.nextFrame(5, temperatureAndDoor))
	if got := g.latestValues(); !slices.Equal(got, []string{"temperature=2"}) {
		t.Errorf("latest values after the decoder was created again: %q, want temperature=2", got)
	}
}

func TestADeviceWithoutADecoderIsAssignedTheFirstKnownOne(t *testing.T) {
	g := newGateway(t)
	withoutDecoder := g.nextFrame(1, values("temperature", 1.0))
	withoutDecoder.DecoderID = ""
	if outcome := g.ingest(withoutDecoder)[0]; !strings.Contains(outcome.Refused, "has no decoder") {
		t.Errorf("without a decoder: refused for %q, want \"has no decoder\"", outcome.Refused)
	}
	unknown := g.nextFrame(2, values("temperature", 1.0))
	unknown.DecoderID = "d9"
	relaytest.Equal(t, "the reason with an unknown decoder", g.ingest(unknown)[0].Refused, "decoder d9 is not known")
	if n := len(g.readings.radio); n != 2 {
		t.Errorf("radio data of %d frames, want 2", n)
	}
	g.mustStore(g.nextFrame(3, values("temperature", 3.0)))
	relaytest.Equal(t, "the assigned decoder", g.device(1).DecoderID, "d1")
	relaytest.NoError(t, g.records.CreateDecoder(t.Context(), 1, decoder("d2", "humidity")))
	withOtherDecoder := g.nextFrame(4, values("temperature", 4.0))
	withOtherDecoder.DecoderID = "d2"
	g.mustStore(withOtherDecoder)
	relaytest.Equal(t, "the decoder after a webhook with another one", g.device(1).DecoderID, "d1")
	g.mustStore(withoutDecoder)
}

func TestFramesCreateNoMoreThanMaxDevices(t *testing.T) {
	g := newGateway(t)
	g.options.MaxDevices = 3
	g.start()
	var batch []iot.Arrival
	for i := range 5 {
		a := g.frame(fmt.Sprint("n1-u", i), values("temperature", 1.0))
		a.Frame.Identifier = fmt.Sprint("tank", i)
		batch = append(batch, a)
	}
	for i, outcome := range g.ingest(batch...) {
		if (outcome.Refused != "") != (i >= 3) || i >= 3 && !strings.Contains(outcome.Refused, "the account has 3 devices") {
			t.Errorf("device %d: refused with the reason %q", i, outcome.Refused)
		}
	}
	g.mustStore(batch[0])
}

func TestABatchOfNewDevicesNeedsSevenReads(t *testing.T) {
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
	// The reads are the versions, the devices, their number, the locations, each of the two
	// decoders, and the number of sensors.
	relaytest.Equal(t, "the number of reads", g.reads.Load(), 7)
}

// Each transaction syncs the disk, so one transaction creates several devices. A device that cannot
// be created does not prevent the creation of the others.
func TestManyDevicesAreCreatedInFewTransactions(t *testing.T) {
	g := newGateway(t)
	taken := deviceRequest()
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
	for i, outcome := range g.ingest(batch...) {
		if refused := strings.Contains(outcome.Refused, "claimed by another account"); refused != (i == 0xfa) || !refused && len(outcome.Points) != 1 {
			t.Errorf("device %d: refused with the reason %q, %d points", i, outcome.Refused, len(outcome.Points))
		}
	}
	// Two transactions of 100 devices, a third one that fails, and one for each of its 100 devices.
	// The device with the taken identifier is tried three times.
	if n := g.writes.Load(); n != 2+1+100+2 {
		t.Errorf("%d transactions, want 105", n)
	}
	if devices, err := g.Devices(t.Context(), 1); err != nil || len(devices) != 299 {
		t.Errorf("%d devices, %v; want 299", len(devices), err)
	}
}

func TestTwoGatewaysThatImportTheSameDevicesAgree(t *testing.T) {
	g := newGateway(t)
	otherService := iot.New(g.records, g.cache, g.readings, catalogtest.Compile, g.options)
	services := []*iot.Service{g.Service, g.Service, otherService, otherService}
	outcomes := make([][]iot.Outcome, len(services))
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
			if outcomes[n], err = s.Ingest(t.Context(), batch); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for n := range outcomes {
		for i, outcome := range outcomes[n] {
			if outcome.Refused != "" || len(outcome.Points) != 1 {
				t.Fatalf("batch %d, frame %d: refused for %q, %d points; want no refusal and 1 point", n, i, outcome.Refused, len(outcome.Points))
			}
			relaytest.Equal(t, fmt.Sprintf("device and sensor of frame %d in batch %d", i, n),
				[]string{outcome.DeviceID, outcome.Points[0].SensorID}, []string{outcomes[0][i].DeviceID, outcomes[0][i].Points[0].SensorID})
		}
	}
	if devices, err := g.Devices(t.Context(), 1); err != nil || len(devices) != 60 {
		t.Errorf("%d devices, %v; want 60", len(devices), err)
	}
}

// Mappings, calibrations and deletions during a batch may change the outcome of a frame, but they
// cause no error.
func TestChangesDuringABatchCauseNoError(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.frame("n1-u0", values("temperature", 1.0)))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for n := range 2 {
		wg.Go(func() {
			for i := range 30 {
				a := g.frame(fmt.Sprintf("n1-u%d.%d", n, i), values("temperature", 1.0, fmt.Sprint("k", i%5), 2.0))
				outcomes, err := g.Ingest(t.Context(), []iot.Arrival{a, a})
				// If a device is deleted between two steps, the caller repeats the batch.
				if err != nil && relay.KindOf(err) != relay.KindNotFound && relay.KindOf(err) != relay.KindUnavailable {
					t.Error(err)
				}
				for _, outcome := range outcomes {
					if outcome.Refused != "" {
						t.Error(outcome.Refused)
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
	g.mustStore(g.frame("n1-last", values("k0", 0.0, "k1", 1.0, "k2", 2.0, "k3", 3.0, "k4", 4.0)))
	if got := g.latestValues(); len(got) < 5 {
		t.Errorf("latest values %q, want 5 or more", got)
	}
}

func TestNoConcurrentlyAddedSensorIsLost(t *testing.T) {
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
		t.Errorf("%d mappings, %v; want 12", len(d.Sensors), err)
	}
}

// loseDevices deletes all devices, like the restore of an old backup.
func (g *gateway) loseDevices() {
	g.t.Helper()
	for _, table := range []string{"device", "sensor", "device_claim"} {
		relaytest.NoError(g.t, g.db.Run(g.t.Context(), table, "DELETE FROM "+table))
	}
}

func TestAFrameCreatesItsDeviceAgainAfterTheDatabaseLostIt(t *testing.T) {
	measured := values("temperature", 1.0, "humidity", 2.0)
	want := []string{"humidity=2", "temperature=1"}
	t.Run("empty caches", func(t *testing.T) {
		g := newGateway(t)
		g.mustStore(g.nextFrame(1, measured))
		g.loseDevices()
		relaytest.NoError(t, g.db.Invalidate(t.Context()))
		g.mustStore(g.nextFrame(2, measured))
		got := g.latestValues()
		slices.Sort(got)
		relaytest.Equal(t, "the latest values", got, want)
	})
	t.Run("a write that finds no device", func(t *testing.T) {
		g := newGateway(t)
		withoutDecoder := g.nextFrame(1, measured)
		withoutDecoder.DecoderID = ""
		g.ingest(withoutDecoder)
		g.loseDevices()
		withDecoder := g.nextFrame(2, measured)
		if _, err := g.Ingest(t.Context(), []iot.Arrival{withDecoder}); relay.KindOf(err) != relay.KindUnavailable {
			t.Errorf("the batch returned %v, want an error of kind unavailable", err)
		}
		g.mustStore(withDecoder)
		got := g.latestValues()
		slices.Sort(got)
		relaytest.Equal(t, "the latest values", got, want)
	})
}
