package iot_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestASensorFollowsTheTypeOfItsKey(t *testing.T) {
	g := newGateway(t)
	named := func() (out []string) {
		records, err := g.Readings(t.Context(), iot.Query{Account: 1, DeviceID: g.device(1).ID}, iot.Metric)
		relaytest.NoError(t, err)
		for _, r := range records {
			out = append(out, fmt.Sprint(r.Name, "=", *r.Value))
		}
		return out
	}
	latest := func() string {
		records, err := g.Latest(t.Context(), 1, g.device(1).ID, iot.Metric)
		relaytest.NoError(t, err)
		return fmt.Sprint(records[0].Name, "=", *records[0].Value)
	}
	g.stored(g.later(1, values("temperature", 1.0)))
	all, err := g.Sensors(t.Context(), 1, g.device(1).ID, "temperature")
	relaytest.NoError(t, err)
	_, err = g.ChangeSensor(t.Context(), 1, all[0].ID, iot.SensorChange{Slope: new(2.0)})
	relaytest.NoError(t, err)

	_, err = g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "humidity", Key: "temperature"})
	relaytest.NoError(t, err)
	if got := latest(); got != "The temperature=1" {
		t.Errorf("before the next frame the latest value is what was measured: %s", got)
	}
	g.stored(g.later(2, values("temperature", 2.0)))
	if got := latest(); got != "The humidity=4" {
		t.Errorf("latest %s", got)
	}
	if got := named(); !slices.Equal(got, []string{"The humidity=4", "The temperature=1"}) {
		t.Errorf("history %q", got)
	}
	now, err := g.Sensors(t.Context(), 1, g.device(1).ID, "temperature")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "id, type and slope of the sensor", []any{now[0].ID, now[0].SensorTypeID, now[0].Slope}, []any{all[0].ID, "humidity", 2.0})

	g.start() // another gateway
	_, err = g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "temperature", Key: "temperature"})
	relaytest.NoError(t, err)
	g.stored(g.later(3, values("temperature", 3.0)))
	if got := named(); !slices.Equal(got, []string{"The temperature=6", "The humidity=4", "The temperature=1"}) {
		t.Errorf("history %q", got)
	}
}

func TestAReplayUnderANewTypeListsEachReadingOnce(t *testing.T) {
	g := newGateway(t)
	first, second := g.later(1, values("temperature", 1.0, "humidity", 40.0)), g.later(2, values("temperature", 2.0))
	g.stored(first, second)
	_, err := g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "state", Key: "temperature"})
	relaytest.NoError(t, err)
	g.stored(first)
	records, err := g.Readings(t.Context(), iot.Query{Account: 1, DeviceID: g.device(1).ID}, iot.Metric)
	relaytest.NoError(t, err)
	var got []string
	for _, r := range records {
		got = append(got, fmt.Sprint(r.Name, " ", *r.Value, " ", r.ReadingDate[14:16]))
	}
	slices.Sort(got)
	if want := []string{"The humidity 40 01", "The state 1 01", "The temperature 2 02"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A gateway that has cached the former type of a sensor must not store readings under it after
// another gateway has changed the type.
func TestTwoGatewaysAgreeOnTheTypeOfASensor(t *testing.T) {
	g := newGateway(t)
	g.stored(g.later(1, values("temperature", 1.0)))
	one := g.Service
	g.start()
	g.stored(g.later(2, values("temperature", 2.0)))
	_, err := g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "state", Key: "temperature"})
	relaytest.NoError(t, err)
	g.stored(g.later(3, values("temperature", 3.0)))
	g.Service = one
	for i, out := range g.stored(g.later(4, values("temperature", 4.0)), g.later(5, values("temperature", 5.0))) {
		relaytest.Equal(t, fmt.Sprint("the type of the reading of frame ", i), out.Points[0].Type, "state")
	}
}

// A key with values of several kinds has one series: numbers and booleans are stored in value, texts
// in text. They are not converted. Objects and lists result in other keys or no values.
func TestValuesOfAnyKindLeaveTheSeriesWhole(t *testing.T) {
	g := newGateway(t)
	steps := []struct {
		value any
		want  string
	}{
		{21.5, "state=21.5"}, {"open", "state=open"}, {true, "state=1"}, {7.0, "state=7"}, {"7", "state=7"}, {"", "state="},
		{false, "state=0"}, {"NaN", "state=NaN"}, {1e300, "state=1e+300"}, {"1e400", "state=1e400"},
	}
	relaytest.NoError(t, g.records.CreateDecoder(t.Context(), 1, decoder("any", "state", "state.x", "state.0")))
	var want []string
	for i, step := range steps {
		a := g.later(i, values("state", step.value))
		a.DecoderID = "any"
		g.stored(a)
		want = append(want, step.want)
		if got := g.latest(); !slices.Equal(got, []string{step.want}) {
			t.Errorf("latest after %v: %q", step.value, got)
		}
	}
	for i, value := range []any{nil, map[string]any{}, []any{}} {
		if out := g.ingest(g.later(100+i, values("state", value)))[0]; out.Refused == "" {
			t.Errorf("the value %v was accepted", value)
		}
	}
	nested := g.later(200, values("state", map[string]any{"x": 1.0}))
	listed := g.later(201, values("state", []any{2.0}))
	g.stored(nested, listed)
	want = append(want, "state.x=1", "state.0=2")
	slices.Reverse(want)
	if got := g.history(1); !slices.Equal(got, want) {
		t.Errorf("history %q\nwant    %q", got, want)
	}
}

func TestAnAccountHasOnlySoManySeries(t *testing.T) {
	g := newGateway(t)
	g.o.MaxSeries = 4
	g.start()
	frame := func(n int, identifier string, kv ...any) iot.Arrival {
		a := g.later(n, values(kv...))
		a.Frame.Identifier, a.Frame.IsDevEUI = identifier, false
		return a
	}
	full := "the account may have no more than 4 series (sensors of devices)"
	out := g.ingest(frame(1, "tank1", "temperature", 1.0), frame(2, "tank2", "temperature", 1.0), frame(3, "tank3", "temperature", 1.0))
	relaytest.Equal(t, "the reasons of three devices", []string{out[0].Refused, out[1].Refused, out[2].Refused}, []string{"", "", full})
	if _, err := g.DeviceByIdentifier(t.Context(), 1, "tank3"); err == nil {
		t.Error("a device without its sensors was made")
	}
	n := probe()
	if _, err := g.CreateDevice(t.Context(), 1, n); fieldsOf(err) != "decoder_id" || !strings.Contains(fmt.Sprint(err), "given data") {
		t.Errorf("%v", err)
	}

	_, err := g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "state", Key: "door"})
	relaytest.NoError(t, err)
	out = g.ingest(frame(4, "tank1", "temperature", 2.0, "door", "open"), frame(5, "tank1", "door", "open"))
	relaytest.Equal(t, "reason, note and points of a frame with a key that has a sensor", []any{out[0].Refused, strings.Join(out[0].Notes, ", "), len(out[0].Points)}, []any{"", full, 1})
	relaytest.Equal(t, "the reason of a frame with no such key", out[1].Refused, full)

	tank2, err := g.DeviceByIdentifier(t.Context(), 1, "tank2")
	relaytest.NoError(t, err, g.DeleteDevice(t.Context(), 1, tank2.ID))
	out = g.ingest(frame(6, "tank1", "door", "shut"))
	relaytest.Equal(t, "reason and points after a device was deleted", []any{out[0].Refused, len(out[0].Points)}, []any{"", 1})
	theirs := frame(7, "tank9", "temperature", 1.0)
	theirs.Account = 2
	relaytest.Equal(t, "the reason in another account", g.ingest(theirs)[0].Refused, "")
}

func TestDeletedDevicesLeaveNothingToTheirSuccessors(t *testing.T) {
	g := newGateway(t)
	g.stored(g.later(1, values("temperature", 1.0, "humidity", 40.0)))
	old := g.device(1).ID
	relaytest.NoError(t, g.DeleteDevice(t.Context(), 1, old))
	if out := g.ingest(iot.Arrival{Record: "ack", Account: 1, ReceivedAt: g.now, Frame: decoders.Frame{Kind: decoders.Ack, Identifier: eui}})[0]; out.Refused == "" {
		t.Error("an acknowledgement of a deleted device was accepted")
	}
	g.stored(g.later(2, values("temperature", 2.0)))
	if id := g.device(1).ID; id == old {
		t.Error("the same id again")
	}
	if got := g.latest(); !slices.Equal(got, []string{"temperature=2"}) {
		t.Errorf("latest %q", got)
	}
	if got := g.history(1); !slices.Equal(got, []string{"temperature=2"}) {
		t.Errorf("history %q", got)
	}
}
