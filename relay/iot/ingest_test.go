package iot_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAFrameOfANewDeviceImportsIt(t *testing.T) {
	g := newGateway(t)
	out := g.stored(g.frame("n1-u1", values("temperature", 21.5, "humidity", 40.0, "other", 1.0)))
	d := g.device(1)
	if d.Name != "probe" || d.LocationID != "here" || d.DecoderID != "d1" || d.Type != iot.LoRaWAN || !d.CreatedAt.Equal(g.now) {
		t.Errorf("%+v", d)
	}
	if out[0].DeviceID != d.ID || len(out[0].Points) != 2 || out[0].Duplicate {
		t.Errorf("%+v", out[0])
	}
	sensors, err := g.Sensors(t.Context(), 1, d.ID, "TEMP")
	if err != nil || len(sensors) != 1 || sensors[0].Slope != 1 || sensors[0].SensorTypeID != "temperature" {
		t.Errorf("%+v, %v", sensors, err)
	}
	records, err := g.Latest(t.Context(), 1, d.ID, iot.Metric)
	relaytest.NoError(t, err)
	want := iot.Record{
		SensorID: sensors[0].ID, DeviceID: d.ID, Key: "temperature", Name: "The temperature", Value: records[1].Value,
		ReadingDate: "2026-03-01 12:00:00", MetricUnits: "u",
	}
	if len(records) != 2 || records[1] != want || *records[1].Value != 21.5 {
		t.Errorf("%+v", records)
	}
}

func TestStoredIsValueTimesSlopePlusOffset(t *testing.T) {
	cases := []struct {
		name          string
		slope, offset float64
		value         any
		want          string
		lost          bool
	}{
		{"as decoded", 1, 0, 21.5, "temperature=21.5", false},
		{"to Fahrenheit", 1.8, 32, 100.0, "temperature=212", false},
		{"a slope of nothing", 0, 7, 100.0, "temperature=7", false},
		{"backwards", -1, 0, 3.0, "temperature=-3", false},
		{"true is one", 10, 1, true, "temperature=11", false},
		{"text stays text", 10, 1, "open", "temperature=open", false},
		{"text that looks like a number stays text", 10, 1, "21.5", "temperature=21.5", false},
		{"beyond what a float holds", 1e300, 0, 1e300, "", true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			g := newGateway(t)
			g.stored(g.frame("n1-u1", values("humidity", 1.0)))
			sensors, err := g.Sensors(t.Context(), 1, g.device(1).ID, "temperature")
			relaytest.NoError(t, err)
			_, err = g.ChangeSensor(t.Context(), 1, sensors[0].ID, iot.SensorChange{Slope: &tc.slope, Offset: &tc.offset})
			relaytest.NoError(t, err)
			out := g.ingest(g.frame("n1-u2", values("temperature", tc.value)))[0]
			if out.Refused != "" || (len(out.Lost) > 0) != tc.lost {
				t.Fatalf("%+v", out)
			}
			if got := g.history(1); tc.lost == slices.ContainsFunc(got, func(s string) bool { return s == tc.want && s != "" }) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestAFrameSeenBeforeIsDropped(t *testing.T) {
	g := newGateway(t)
	again := func(record string, v float64) iot.Arrival {
		a := g.frame(record, values("temperature", v))
		a.Frame.DedupID = "same"
		return a
	}
	first := g.stored(again("n1-u1", 1), again("n1-u2", 2))
	if first[0].Duplicate || !first[1].Duplicate || first[1].Refused != "" {
		t.Errorf("in one batch: %+v", first)
	}
	if out := g.stored(again("n1-u3", 3)); !out[0].Duplicate {
		t.Errorf("in a later one: %+v", out)
	}
	if out := g.stored(again("n1-u1", 4)); out[0].Duplicate {
		t.Errorf("the record that brought it: %+v", out)
	}
	if got := g.history(1); !slices.Equal(got, []string{"temperature=4"}) {
		t.Errorf("%q: the same record overwrites itself", got)
	}
	theirs := again("n1-u5", 5)
	theirs.Account, theirs.Frame.Identifier, theirs.Frame.IsDevEUI = 2, "other", false
	long := again("n1-u6", 6)
	long.Frame.DedupID = strings.Repeat("x", 100_000)
	longer := again("n1-u7", 7)
	longer.Frame.DedupID = long.Frame.DedupID + "y"
	for i, out := range g.stored(theirs, long, longer) {
		if out.Duplicate {
			t.Errorf("frame %d is another one", i)
		}
	}
}

// A crash after the frame was claimed and before anything was stored must not
// make the repetition a duplicate.
func TestAfterACrashTheSameRecordPasses(t *testing.T) {
	g := newGateway(t)
	g.readings.down = errors.New("disk is full")
	a := g.frame("n1-u1", values("temperature", 21.0))
	if _, err := g.Ingest(t.Context(), []iot.Arrival{a}); relay.KindOf(err) != relay.KindUnavailable {
		t.Fatalf("%v: the batch has to come again", err)
	}
	g.readings.down = nil
	g.start()
	if out := g.stored(a); out[0].Duplicate {
		t.Error("a duplicate of itself")
	}
	if got := g.latest(); !slices.Equal(got, []string{"temperature=21"}) {
		t.Errorf("%q", got)
	}
}

func TestWhatCannotBeStoredSaysWhy(t *testing.T) {
	frame := func(f decoders.Frame) iot.Arrival {
		if f.Kind == "" {
			f.Kind = decoders.Uplink
		}
		return iot.Arrival{Record: "n1-u1", Account: 1, DecoderID: "d1", Frame: f}
	}
	without := func(a iot.Arrival, decoder string) iot.Arrival { a.DecoderID = decoder; return a }
	object := values("temperature", 1.0)
	cases := []struct {
		name string
		a    iot.Arrival
		want string // a part of the reason; empty: it is no failure
	}{
		{"no device", frame(decoders.Frame{Object: object}), "the frame names no device"},
		{"blanks for a device", frame(decoders.Frame{Identifier: " \t", Object: object}), "the frame names no device"},
		{"no account", iot.Arrival{Record: "r", Frame: decoders.Frame{Kind: decoders.Uplink, Identifier: eui, Object: object}}, "belongs to no account"},
		{"an identifier of a megabyte", frame(decoders.Frame{Identifier: strings.Repeat("x", 1<<20), Object: object}), "has 1048576 bytes"},
		{"an identifier that is no text", frame(decoders.Frame{Identifier: "a\xff", Object: object}), `"a\xff" has invalid or control characters`},
		{"an identifier with a line break", frame(decoders.Frame{Identifier: "a\nb", Object: object}), "has invalid or control characters"},
		{"an unknown decoder", without(frame(decoders.Frame{Identifier: eui, Object: object}), "d9"), "decoder d9 is not known"},
		{"no decoder", without(frame(decoders.Frame{Identifier: eui, Object: object}), ""), "has no decoder"},
		{"ciphertext", frame(decoders.Frame{Identifier: eui, Payload: []byte{1}, Encrypted: true}), "encrypted"},
		{"a payload that the codec cannot read", frame(decoders.Frame{Identifier: eui, Payload: []byte{1}}), "the payload is not JSON"},
		{"no key that is mapped", frame(decoders.Frame{Identifier: eui, Object: values("b", 1.0, "a", 2.0)}), "no sensor is mapped to any key of the frame: a, b"},
		{"no values at all", frame(decoders.Frame{Identifier: eui, Object: values()}), "found no values"},
		{"an acknowledgement of nobody", frame(decoders.Frame{Identifier: eui, Kind: decoders.Ack}), "is not known"},
		{"an uplink without payload", without(frame(decoders.Frame{Identifier: eui}), ""), ""},
		{"MAC commands", without(frame(decoders.Frame{Identifier: eui, HasFPort: true, Payload: []byte{2}}), ""), ""},
		{"a join", frame(decoders.Frame{Identifier: eui, Kind: decoders.Join}), ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			g := newGateway(t)
			tc.a.ReceivedAt = g.now
			out := g.ingest(tc.a)[0]
			if !strings.Contains(out.Refused, tc.want) || (out.Refused == "") != (tc.want == "") || len(out.Points) > 0 {
				t.Errorf("%+v, want %q", out, tc.want)
			}
		})
	}
}

func TestADeviceOfAnotherAccountIsRefused(t *testing.T) {
	g := newGateway(t)
	g.stored(g.frame("n1-u1", values("temperature", 1.0)))
	for _, identifier := range []string{eui, "24:E1:24:13:6B:50:22:17"} {
		theirs := g.frame("n1-u2", values("temperature", 2.0))
		theirs.Account, theirs.Frame.Identifier = 2, identifier
		if out := g.ingest(theirs)[0]; !strings.Contains(out.Refused, "already been claimed by another account") {
			t.Errorf("%+v", out)
		}
	}
	if _, err := g.DeviceByIdentifier(t.Context(), 2, eui); relay.KindOf(err) != relay.KindNotFound {
		t.Error(err)
	}
	if _, err := g.Readings(t.Context(), iot.Query{Account: 2, DeviceID: g.device(1).ID}, iot.Metric); relay.KindOf(err) != relay.KindNotFound {
		t.Error(err)
	}
	if _, err := g.Latest(t.Context(), 2, g.device(1).ID, iot.Metric); relay.KindOf(err) != relay.KindNotFound {
		t.Error(err)
	}
}

func TestAMACAddressIsOneDeviceHoweverItIsWritten(t *testing.T) {
	g := newGateway(t)
	var ids []string
	for i, identifier := range []string{"AA:BB:CC:DD:EE:FF", "aa-bb-cc-dd-ee-ff", " aabbccddeeff"} {
		a := g.frame(fmt.Sprint("n1-u", i), values("temperature", 1.0))
		a.Frame.Identifier, a.Frame.IsDevEUI = identifier, false
		ids = append(ids, g.stored(a)[0].DeviceID)
	}
	if len(slices.Compact(ids)) != 1 {
		t.Error(ids)
	}
	if d, err := g.DeviceByIdentifier(t.Context(), 1, "AA:BB:CC:DD:EE:FF"); err != nil || d.Identifier != "aabbccddeeff" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestTheLatestValueNeverGoesBackwards(t *testing.T) {
	g := newGateway(t)
	for i, step := range []struct {
		minutes int
		want    string
	}{{10, "temperature=0"}, {20, "temperature=1"}, {15, "temperature=1"}, {20, "temperature=3"}} {
		a := g.frame(fmt.Sprint("n1-u", i), values("temperature", float64(i)))
		a.Frame.SampleTime = g.now.Add(time.Duration(step.minutes-60) * time.Minute)
		g.stored(a)
		if got := g.latest(); !slices.Equal(got, []string{step.want}) {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	if got := g.history(1); !slices.Equal(got, []string{"temperature=3", "temperature=2", "temperature=0"}) {
		t.Errorf("%q", got)
	}
}

func TestWhatTheStoreRefusesIsNamedAndNotLatest(t *testing.T) {
	g := newGateway(t)
	g.readings.refuse = map[string]string{"humidity": "field type conflict", "uplink": "no"}
	a := g.frame("n1-u1", values("temperature", 1.0, "humidity", 2.0))
	a.Frame.FCnt, a.Frame.HasFCnt = 7, true
	out := g.ingest(a)[0]
	if out.Refused != "" || !slices.Equal(out.Lost, []string{"humidity: field type conflict", "uplink: no"}) || len(out.Points) != 1 {
		t.Errorf("%+v", out)
	}
	if got := g.latest(); !slices.Equal(got, []string{"temperature=1"}) {
		t.Errorf("%q", got)
	}
}

func TestReadingsHaveTheirOwnTimesWhereTheyArePlausible(t *testing.T) {
	g := newGateway(t)
	a := g.frame("n1-u1", nil)
	a.Frame.TimeNote, a.Frame.Warnings = "time: is no time", []string{"rxInfo: is no list"}
	a.Frame.Samples = []decoders.Reading{
		{Key: "temperature", Value: 1, Time: g.now.Add(-time.Hour)},
		{Key: "temperature", Value: 2},
		{Key: "humidity", Value: 3, Time: time.Unix(5, 0)},
	}
	out := g.stored(a)[0]
	if out.Note != "time: is no time; rxInfo: is no list; time 1970-01-01T00:00:05Z is not plausible" {
		t.Errorf("noted %q", out.Note)
	}
	for i, want := range []time.Time{g.now.Add(-time.Hour), g.now, g.now} {
		if !out.Points[i].Time.Equal(want) {
			t.Errorf("reading %d: %v, want %v", i, out.Points[i].Time, want)
		}
	}
}

func TestInfinitiesOfASenderAreLeftOut(t *testing.T) {
	g := newGateway(t)
	out := g.ingest(g.frame("n1-u1", values("temperature", math.Inf(1), "humidity", 2.0)))[0]
	if out.Refused != "" || len(out.Points) != 1 || !strings.Contains(out.Note, "temperature: is not a finite number") {
		t.Errorf("%+v", out)
	}
}

func TestAnEmptyBatchIsNothing(t *testing.T) {
	newGateway(t).ingest()
}
