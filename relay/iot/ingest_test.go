package iot_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
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
	relaytest.Equal(t, "name, location, decoder and type of the device", []any{d.Name, d.LocationID, d.DecoderID, d.Type}, []any{"probe", "here", "d1", iot.LoRaWAN})
	relaytest.Equal(t, "the time of creation", d.CreatedAt, g.now)
	relaytest.Equal(t, "the device of the outcome", out[0].DeviceID, d.ID)
	relaytest.Equal(t, "the number of points", len(out[0].Points), 2)
	relaytest.Equal(t, "whether the frame is a duplicate", out[0].Duplicate, false)
	sensors, err := g.Sensors(t.Context(), 1, d.ID, "TEMP")
	relaytest.NoError(t, err)
	if len(sensors) != 1 {
		t.Fatalf("%d sensors match TEMP, want 1", len(sensors))
	}
	relaytest.Equal(t, "the slope", sensors[0].Slope, 1)
	relaytest.Equal(t, "the sensor type", sensors[0].SensorTypeID, "temperature")
	records, err := g.Latest(t.Context(), 1, d.ID, iot.Metric)
	relaytest.NoError(t, err)
	if len(records) != 2 {
		t.Fatalf("%d latest readings, want 2", len(records))
	}
	relaytest.Equal(t, "the latest temperature", records[1], iot.ReadingRow{
		SensorID: sensors[0].ID, DeviceID: d.ID, Key: "temperature", Name: "The temperature", Value: new(21.5),
		ReadingDate: "2026-03-01 12:00:00", MetricUnits: "u",
	})
}

// A text that spells a number is stored as a number if the sensor type has units.
func TestNumbersInTexts(t *testing.T) {
	g := newGateway(t)
	relaytest.NoError(t, g.records.PutSensorType(t.Context(), iot.SensorType{ID: "plain", Name: "No units"}))
	_, err := g.AddSensor(t.Context(), 1, "d1", iot.Mapping{Key: "serial", SensorTypeID: "plain"})
	relaytest.NoError(t, err)
	for i, tc := range []struct{ key, text, want, note string }{
		{"temperature", "-1.6", "-1.6", `temperature: the text "-1.6" is stored as the number -1.6`},
		{"temperature", " 2.5e1 ", "25", `temperature: the text " 2.5e1 " is stored as the number 25`},
		{"temperature", "open", `"open"`, `temperature: the text "open" is not a number and is stored as text`},
		{"temperature", "0x10", `"0x10"`, `temperature: the text "0x10" is not a number and is stored as text`},
		{"temperature", "1_0", `"1_0"`, `temperature: the text "1_0" is not a number and is stored as text`},
		{"temperature", "inf", `"inf"`, `temperature: the text "inf" is not a number and is stored as text`},
		{"temperature", "1e999", `"1e999"`, `temperature: the text "1e999" is not a number and is stored as text`},
		{"serial", "0042", `"0042"`, ""},
	} {
		out := g.ingest(g.frame(fmt.Sprint("n1-u", i), values(tc.key, tc.text)))[0]
		relaytest.Equal(t, tc.text+": the refusal", out.Refused, "")
		relaytest.Equal(t, tc.text+": the number of points", len(out.Points), 1)
		got := strconv.Quote(out.Points[0].Text)
		if !out.Points[0].IsText {
			got = fmt.Sprint(out.Points[0].Value)
		}
		relaytest.Equal(t, tc.text+": what is stored", got, tc.want)
		relaytest.Equal(t, tc.text+": the notes", strings.Join(out.Notes, "; "), tc.note)
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
		{"text that is a number is that number", 10, 1, "21.5", "temperature=216", false},
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
			relaytest.Equal(t, "the reason of a refusal", out.Refused, "")
			if (len(out.Lost) > 0) != tc.lost {
				t.Fatalf("lost %q, want some: %v", out.Lost, tc.lost)
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
	isDuplicate := func(what string, record string, v float64, want bool) {
		t.Helper()
		relaytest.Equal(t, "whether "+what+" is a duplicate", g.stored(again(record, v))[0].Duplicate, want)
	}
	first := g.stored(again("n1-u1", 1), again("n1-u2", 2))
	relaytest.Equal(t, "which frames of one batch are duplicates", []bool{first[0].Duplicate, first[1].Duplicate}, []bool{false, true})
	isDuplicate("a frame of a later batch", "n1-u3", 3, true)
	isDuplicate("the record that brought the frame", "n1-u1", 4, false)
	relaytest.Equal(t, "the history, as the same record overwrites itself", g.history(1), []string{"temperature=4"})
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
	relaytest.Equal(t, "whether the frame is a duplicate of itself", g.stored(a)[0].Duplicate, false)
	relaytest.Equal(t, "the latest readings", g.latest(), []string{"temperature=21"})
}

func TestRefusedFramesHaveAReason(t *testing.T) {
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
			if !strings.Contains(out.Refused, tc.want) || (out.Refused == "") != (tc.want == "") {
				t.Errorf("refused with the reason %q, want %q", out.Refused, tc.want)
			}
			relaytest.Equal(t, "the number of points", len(out.Points), 0)
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
			t.Errorf("%s: the reason is %q", identifier, out.Refused)
		}
	}
	if _, err := g.DeviceByIdentifier(t.Context(), 2, eui); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("the device by its identifier: %v", err)
	}
	if _, err := g.Readings(t.Context(), iot.Query{Account: 2, DeviceID: g.device(1).ID}, iot.Metric); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("the readings: %v", err)
	}
	if _, err := g.Latest(t.Context(), 2, g.device(1).ID, iot.Metric); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("the latest readings: %v", err)
	}
}

func TestEachNotationOfAMACAddressIsTheSameDevice(t *testing.T) {
	g := newGateway(t)
	var ids []string
	for i, identifier := range []string{"AA:BB:CC:DD:EE:FF", "aa-bb-cc-dd-ee-ff", " aabbccddeeff"} {
		a := g.frame(fmt.Sprint("n1-u", i), values("temperature", 1.0))
		a.Frame.Identifier, a.Frame.IsDevEUI = identifier, false
		ids = append(ids, g.stored(a)[0].DeviceID)
	}
	relaytest.Equal(t, "the devices of the frames", ids, []string{ids[0], ids[0], ids[0]})
	d, err := g.DeviceByIdentifier(t.Context(), 1, "AA:BB:CC:DD:EE:FF")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the identifier", d.Identifier, "aabbccddeeff")
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
		relaytest.Equal(t, fmt.Sprint("the latest readings after step ", i), g.latest(), []string{step.want})
	}
	relaytest.Equal(t, "the history", g.history(1), []string{"temperature=3", "temperature=2", "temperature=0"})
}

func TestPointsThatTheStoreRefusesAreLostAndNotLatest(t *testing.T) {
	g := newGateway(t)
	g.readings.refuse = map[string]string{"humidity": "field type conflict", "uplink": "no"}
	a := g.frame("n1-u1", values("temperature", 1.0, "humidity", 2.0))
	a.Frame.FCnt, a.Frame.HasFCnt = 7, true
	out := g.ingest(a)[0]
	relaytest.Equal(t, "the reason of a refusal", out.Refused, "")
	relaytest.Equal(t, "the lost points", out.Lost, []string{"humidity: field type conflict", "uplink: no"})
	relaytest.Equal(t, "the number of stored points", len(out.Points), 1)
	relaytest.Equal(t, "the latest readings", g.latest(), []string{"temperature=1"})
}

func TestReadingsHaveTheirOwnTimesWhereTheyArePlausible(t *testing.T) {
	g := newGateway(t)
	a := g.frame("n1-u1", nil)
	a.Frame.TimeNote, a.Frame.Warnings = "time: is not a time", []string{"rxInfo: is no list"}
	a.Frame.Samples = []decoders.Reading{
		{Key: "temperature", Value: 1, Time: g.now.Add(-time.Hour)},
		{Key: "temperature", Value: 2},
		{Key: "humidity", Value: 3, Time: time.Unix(5, 0)},
	}
	out := g.stored(a)[0]
	relaytest.Equal(t, "the notes", out.Notes, decoders.Notes{
		"time: is not a time; the time of receipt is used", "rxInfo: is no list",
		"humidity: time 1970-01-01T00:00:05Z is not plausible; the frame's time is used",
	})
	var times []time.Time
	for _, p := range out.Points {
		times = append(times, p.Time)
	}
	relaytest.Equal(t, "the times of the readings", times, []time.Time{g.now.Add(-time.Hour), g.now, g.now})
}

func TestInfiniteValuesAreLeftOut(t *testing.T) {
	g := newGateway(t)
	out := g.ingest(g.frame("n1-u1", values("temperature", math.Inf(1), "humidity", 2.0)))[0]
	relaytest.Equal(t, "the reason of a refusal", out.Refused, "")
	relaytest.Equal(t, "the number of points", len(out.Points), 1)
	relaytest.Equal(t, "the notes", out.Notes, decoders.Notes{"temperature: is not a finite number"})
}

func TestAnEmptyBatchHasNoOutcomes(t *testing.T) {
	newGateway(t).ingest()
}
