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

func TestASensorChangesTypeWithTheMappingOfItsKey(t *testing.T) {
	g := newGateway(t)
	history := func() (list []string) {
		rows, err := g.Readings(t.Context(), iot.Query{Account: 1, DeviceID: g.device(1).ID}, iot.Metric)
		relaytest.NoError(t, err)
		for _, r := range rows {
			list = append(list, fmt.Sprint(r.Name, "=", *r.Value))
		}
		return list
	}
	latest := func() string {
		rows, err := g.Latest(t.Context(), 1, g.device(1).ID, iot.Metric)
		relaytest.NoError(t, err)
		return fmt.Sprint(rows[0].Name, "=", *rows[0].Value)
	}
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	sensors, err := g.Sensors(t.Context(), 1, g.device(1).ID, "temperature")
	relaytest.NoError(t, err)
	_, err = g.ChangeSensor(t.Context(), 1, sensors[0].ID, iot.SensorChange{Slope: new(2.0)})
	relaytest.NoError(t, err)

	_, err = g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "humidity", Key: "temperature"})
	relaytest.NoError(t, err)
	if got := latest(); got != "The temperature=1" {
		t.Errorf("latest value before the next frame = %s, want The temperature=1", got)
	}
	g.mustStore(g.nextFrame(2, values("temperature", 2.0)))
	if got := latest(); got != "The humidity=4" {
		t.Errorf("latest value after the next frame = %s, want The humidity=4", got)
	}
	if got := history(); !slices.Equal(got, []string{"The humidity=4", "The temperature=1"}) {
		t.Errorf("history %q", got)
	}
	changed, err := g.Sensors(t.Context(), 1, g.device(1).ID, "temperature")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "id, type and slope of the sensor", []any{changed[0].ID, changed[0].SensorTypeID, changed[0].Slope}, []any{sensors[0].ID, "humidity", 2.0})

	g.start() // another gateway
	_, err = g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "temperature", Key: "temperature"})
	relaytest.NoError(t, err)
	g.mustStore(g.nextFrame(3, values("temperature", 3.0)))
	if got := history(); !slices.Equal(got, []string{"The temperature=6", "The humidity=4", "The temperature=1"}) {
		t.Errorf("history %q", got)
	}
}

func TestAReplayWithANewTypeListsEachReadingOnce(t *testing.T) {
	g := newGateway(t)
	frame1, frame2 := g.nextFrame(1, values("temperature", 1.0, "humidity", 40.0)), g.nextFrame(2, values("temperature", 2.0))
	g.mustStore(frame1, frame2)
	_, err := g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "state", Key: "temperature"})
	relaytest.NoError(t, err)
	g.mustStore(frame1)
	rows, err := g.Readings(t.Context(), iot.Query{Account: 1, DeviceID: g.device(1).ID}, iot.Metric)
	relaytest.NoError(t, err)
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprint(r.Name, " ", *r.Value, " ", r.ReadingDate[14:16]))
	}
	slices.Sort(got)
	if want := []string{"The humidity 40 01", "The state 1 01", "The temperature 2 02"}; !slices.Equal(got, want) {
		t.Errorf("readings %q, want %q", got, want)
	}
}

// A gateway with the former type of a sensor in its cache must not store readings under that type
// after another gateway has changed it.
func TestTwoGatewaysAgreeOnTheTypeOfASensor(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	firstService := g.Service
	g.start()
	g.mustStore(g.nextFrame(2, values("temperature", 2.0)))
	_, err := g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "state", Key: "temperature"})
	relaytest.NoError(t, err)
	g.mustStore(g.nextFrame(3, values("temperature", 3.0)))
	g.Service = firstService
	for i, outcome := range g.mustStore(g.nextFrame(4, values("temperature", 4.0)), g.nextFrame(5, values("temperature", 5.0))) {
		relaytest.Equal(t, fmt.Sprint("the type of the reading of frame ", i), outcome.Points[0].Type, "state")
	}
}

// A key with values of several kinds has one series: numbers and booleans are stored in value, texts
// in text, without conversion. Objects and lists result in other keys or no values.
func TestASeriesHoldsNumbersBooleansAndTexts(t *testing.T) {
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
		a := g.nextFrame(i, values("state", step.value))
		a.DecoderID = "any"
		g.mustStore(a)
		want = append(want, step.want)
		if got := g.latestValues(); !slices.Equal(got, []string{step.want}) {
			t.Errorf("latest value after %v = %q, want %q", step.value, got, step.want)
		}
	}
	for i, value := range []any{nil, map[string]any{}, []any{}} {
		if outcome := g.ingest(g.nextFrame(100+i, values("state", value)))[0]; outcome.Refused == "" {
			t.Errorf("the value %v was accepted", value)
		}
	}
	nested := g.nextFrame(200, values("state", map[string]any{"x": 1.0}))
	listed := g.nextFrame(201, values("state", []any{2.0}))
	g.mustStore(nested, listed)
	want = append(want, "state.x=1", "state.0=2")
	slices.Reverse(want)
	if got := g.history(1); !slices.Equal(got, want) {
		t.Errorf("history %q\nwant    %q", got, want)
	}
}

func TestTheNumberOfSeriesOfAnAccountIsLimited(t *testing.T) {
	g := newGateway(t)
	g.options.MaxSeries = 4
	g.start()
	frame := func(n int, identifier string, kv ...any) iot.Arrival {
		a := g.nextFrame(n, values(kv...))
		a.Frame.Identifier, a.Frame.IsDevEUI = identifier, false
		return a
	}
	limitReached := "the account may have no more than 4 series (sensors of devices)"
	outcomes := g.ingest(frame(1, "tank1", "temperature", 1.0), frame(2, "tank2", "temperature", 1.0), frame(3, "tank3", "temperature", 1.0))
	relaytest.Equal(t, "the refusals of three devices", []string{outcomes[0].Refused, outcomes[1].Refused, outcomes[2].Refused}, []string{"", "", limitReached})
	if _, err := g.DeviceByIdentifier(t.Context(), 1, "tank3"); err == nil {
		t.Error("a device without its sensors was created")
	}
	request := deviceRequest()
	if _, err := g.CreateDevice(t.Context(), 1, request); fieldsOf(err) != "decoder_id" || !strings.Contains(fmt.Sprint(err), "given data") {
		t.Errorf("got error %v, want a problem of decoder_id", err)
	}

	_, err := g.AddSensor(t.Context(), 1, "d1", iot.Mapping{SensorTypeID: "state", Key: "door"})
	relaytest.NoError(t, err)
	outcomes = g.ingest(frame(4, "tank1", "temperature", 2.0, "door", "open"), frame(5, "tank1", "door", "open"))
	relaytest.Equal(t, "refusal, notes and points of a frame with one key that has a sensor", []any{outcomes[0].Refused, strings.Join(outcomes[0].Notes, ", "), len(outcomes[0].Points)}, []any{"", limitReached, 1})
	relaytest.Equal(t, "the refusal of a frame without a key that has a sensor", outcomes[1].Refused, limitReached)

	tank2, err := g.DeviceByIdentifier(t.Context(), 1, "tank2")
	relaytest.NoError(t, err, g.DeleteDevice(t.Context(), 1, tank2.ID))
	outcomes = g.ingest(frame(6, "tank1", "door", "shut"))
	relaytest.Equal(t, "refusal and points after a device was deleted", []any{outcomes[0].Refused, len(outcomes[0].Points)}, []any{"", 1})
	otherAccount := frame(7, "tank9", "temperature", 1.0)
	otherAccount.Account = 2
	relaytest.Equal(t, "the refusal in another account", g.ingest(otherAccount)[0].Refused, "")
}

func TestADeviceCreatedAgainDoesNotSeeEarlierReadings(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0, "humidity", 40.0)))
	deletedID := g.device(1).ID
	relaytest.NoError(t, g.DeleteDevice(t.Context(), 1, deletedID))
	if outcome := g.ingest(iot.Arrival{RecordID: "ack", Account: 1, ReceivedAt: g.now, Frame: decoders.Frame{Kind: decoders.Ack, Identifier: eui}})[0]; outcome.Refused == "" {
		t.Error("an acknowledgement of a deleted device was accepted")
	}
	g.mustStore(g.nextFrame(2, values("temperature", 2.0)))
	if id := g.device(1).ID; id == deletedID {
		t.Error("the new device has the ID of the deleted one")
	}
	if got := g.latestValues(); !slices.Equal(got, []string{"temperature=2"}) {
		t.Errorf("latest values %q, want temperature=2", got)
	}
	if got := g.history(1); !slices.Equal(got, []string{"temperature=2"}) {
		t.Errorf("history %q, want temperature=2", got)
	}
}
