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

func TestAFrameOfANewDeviceCreatesIt(t *testing.T) {
	g := newGateway(t)
	outcomes := g.mustStore(g.frame("n1-u1", values("temperature", 21.5, "humidity", 40.0, "other", 1.0)))
	d := g.device(1)
	relaytest.Equal(t, "name, location, decoder and type of the device", []any{d.Name, d.LocationID, d.DecoderID, d.Type}, []any{"probe", "here", "d1", iot.LoRaWAN})
	relaytest.Equal(t, "the time of creation", d.CreatedAt, g.now)
	relaytest.Equal(t, "the device of the outcome", outcomes[0].DeviceID, d.ID)
	relaytest.Equal(t, "the number of points", len(outcomes[0].Points), 2)
	relaytest.Equal(t, "whether the frame is a duplicate", outcomes[0].Duplicate, false)
	sensors, err := g.Sensors(t.Context(), 1, d.ID, "TEMP")
	relaytest.NoError(t, err)
	if len(sensors) != 1 {
		t.Fatalf("%d sensors match TEMP, want 1", len(sensors))
	}
	relaytest.Equal(t, "the slope", sensors[0].Slope, 1)
	relaytest.Equal(t, "the sensor type", sensors[0].SensorTypeID, "temperature")
	rows, err := g.Latest(t.Context(), 1, d.ID, iot.Metric)
	relaytest.NoError(t, err)
	if len(rows) != 2 {
		t.Fatalf("%d latest readings, want 2", len(rows))
	}
	relaytest.Equal(t, "the latest temperature", rows[1], iot.ReadingRow{
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
		{"temperature", "-1.6", "-1.6", `temperature: the string "-1.6" is stored as the number -1.6`},
		{"temperature", " 2.5e1 ", "25", `temperature: the string " 2.5e1 " is stored as the number 25`},
		{"temperature", "open", `"open"`, `temperature: the string "open" is not a number and is stored as a string`},
		{"temperature", "0x10", `"0x10"`, `temperature: the string "0x10" is not a number and is stored as a string`},
		{"temperature", "1_0", `"1_0"`, `temperature: the string "1_0" is not a number and is stored as a string`},
		{"temperature", "inf", `"inf"`, `temperature: the string "inf" is not a number and is stored as a string`},
		{"temperature", "1e999", `"1e999"`, `temperature: the string "1e999" is not a number and is stored as a string`},
		{"serial", "0042", `"0042"`, ""},
	} {
		outcome := g.ingest(g.frame(fmt.Sprint("n1-u", i), values(tc.key, tc.text)))[0]
		relaytest.Equal(t, tc.text+": the refusal", outcome.Refused, "")
		relaytest.Equal(t, tc.text+": the number of points", len(outcome.Points), 1)
		got := strconv.Quote(outcome.Points[0].Text)
		if !outcome.Points[0].IsText {
			got = fmt.Sprint(outcome.Points[0].Value)
		}
		relaytest.Equal(t, tc.text+": the stored value", got, tc.want)
		relaytest.Equal(t, tc.text+": the notes", strings.Join(outcome.Notes, "; "), tc.note)
	}
}

func TestTheStoredValueIsTheValueTimesSlopePlusOffset(t *testing.T) {
	cases := []struct {
		name          string
		slope, offset float64
		value         any
		want          string
		lost          bool
	}{
		{"as decoded", 1, 0, 21.5, "temperature=21.5", false},
		{"to Fahrenheit", 1.8, 32, 100.0, "temperature=212", false},
		{"a slope of zero", 0, 7, 100.0, "temperature=7", false},
		{"a negative slope", -1, 0, 3.0, "temperature=-3", false},
		{"true is one", 10, 1, true, "temperature=11", false},
		{"a string stays a string", 10, 1, "open", "temperature=open", false},
		{"text with a number is converted", 10, 1, "21.5", "temperature=216", false},
		{"a result beyond the range of a float64", 1e300, 0, 1e300, "", true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			g := newGateway(t)
			g.mustStore(g.frame("n1-u1", values("humidity", 1.0)))
			sensors, err := g.Sensors(t.Context(), 1, g.device(1).ID, "temperature")
			relaytest.NoError(t, err)
			_, err = g.ChangeSensor(t.Context(), 1, sensors[0].ID, iot.SensorChange{Slope: &tc.slope, Offset: &tc.offset})
			relaytest.NoError(t, err)
			outcome := g.ingest(g.frame("n1-u2", values("temperature", tc.value)))[0]
			relaytest.Equal(t, "the refusal", outcome.Refused, "")
			if (len(outcome.Lost) > 0) != tc.lost {
				t.Fatalf("lost %q, want lost points: %v", outcome.Lost, tc.lost)
			}
			if got := g.history(1); tc.lost == slices.ContainsFunc(got, func(s string) bool { return s == tc.want && s != "" }) {
				t.Errorf("history %q, want %q in it: %v", got, tc.want, !tc.lost)
			}
		})
	}
}

func TestARepeatedFrameIsDropped(t *testing.T) {
	g := newGateway(t)
	frame := func(record string, v float64) iot.Arrival {
		a := g.frame(record, values("temperature", v))
		a.Frame.DedupID = "same"
		return a
	}
	wantDuplicate := func(label string, record string, v float64, want bool) {
		t.Helper()
		relaytest.Equal(t, "whether "+label+" is a duplicate", g.mustStore(frame(record, v))[0].Duplicate, want)
	}
	outcomes := g.mustStore(frame("n1-u1", 1), frame("n1-u2", 2))
	relaytest.Equal(t, "the duplicates in one batch", []bool{outcomes[0].Duplicate, outcomes[1].Duplicate}, []bool{false, true})
	wantDuplicate("a frame of a later batch", "n1-u3", 3, true)
	wantDuplicate("the record of the stored frame", "n1-u1", 4, false)
	relaytest.Equal(t, "the history after the record was ingested again", g.history(1), []string{"temperature=4"})
	otherAccount := frame("n1-u5", 5)
	otherAccount.Account, otherAccount.Frame.Identifier, otherAccount.Frame.IsDevEUI = 2, "other", false
	longID := frame("n1-u6", 6)
	longID.Frame.DedupID = strings.Repeat("x", 100_000)
	longerID := frame("n1-u7", 7)
	longerID.Frame.DedupID = longID.Frame.DedupID + "y"
	for i, outcome := range g.mustStore(otherAccount, longID, longerID) {
		if outcome.Duplicate {
			t.Errorf("frame %d with another ID is a duplicate", i)
		}
	}
}

// A crash after a frame was claimed and before its readings were stored must not make the repetition
// a duplicate.
func TestAfterACrashTheSameRecordIsStored(t *testing.T) {
	g := newGateway(t)
	g.readings.down = errors.New("disk is full")
	a := g.frame("n1-u1", values("temperature", 21.0))
	if _, err := g.Ingest(t.Context(), []iot.Arrival{a}); relay.KindOf(err) != relay.KindUnavailable {
		t.Fatalf("got error %v, want kind unavailable", err)
	}
	g.readings.down = nil
	g.start()
	relaytest.Equal(t, "whether the frame is a duplicate of itself", g.mustStore(a)[0].Duplicate, false)
	relaytest.Equal(t, "the latest readings", g.latestValues(), []string{"temperature=21"})
}

func TestRefusalsHaveAReason(t *testing.T) {
	frame := func(f decoders.Frame) iot.Arrival {
		if f.Kind == "" {
			f.Kind = decoders.Uplink
		}
		return iot.Arrival{RecordID: "n1-u1", Account: 1, DecoderID: "d1", Frame: f}
	}
	withDecoder := func(a iot.Arrival, decoder string) iot.Arrival { a.DecoderID = decoder; return a }
	object := values("temperature", 1.0)
	cases := []struct {
		name    string
		arrival iot.Arrival
		want    string // a part of the reason; empty if the frame is not refused
	}{
		{"no identifier", frame(decoders.Frame{Object: object}), "the frame names no device"},
		{"a blank identifier", frame(decoders.Frame{Identifier: " \t", Object: object}), "the frame names no device"},
		{"no account", iot.Arrival{RecordID: "r", Frame: decoders.Frame{Kind: decoders.Uplink, Identifier: eui, Object: object}}, "belongs to no account"},
		{"an identifier of 1 MiB", frame(decoders.Frame{Identifier: strings.Repeat("x", 1<<20), Object: object}), "has 1048576 bytes"},
		{"an identifier that is not UTF-8", frame(decoders.Frame{Identifier: "a\xff", Object: object}), `"a\xff" has invalid or control characters`},
		{"an identifier with a line break", frame(decoders.Frame{Identifier: "a\nb", Object: object}), "has invalid or control characters"},
		{"an unknown decoder", withDecoder(frame(decoders.Frame{Identifier: eui, Object: object}), "d9"), "decoder d9 is not known"},
		{"no decoder", withDecoder(frame(decoders.Frame{Identifier: eui, Object: object}), ""), "has no decoder"},
		{"ciphertext", frame(decoders.Frame{Identifier: eui, Payload: []byte{1}, Encrypted: true}), "encrypted"},
		{"a payload that the codec cannot read", frame(decoders.Frame{Identifier: eui, Payload: []byte{1}}), "the payload is not JSON"},
		{"keys without a mapping", frame(decoders.Frame{Identifier: eui, Object: values("b", 1.0, "a", 2.0)}), "no sensor is mapped to any key of the frame: a, b"},
		{"an empty object", frame(decoders.Frame{Identifier: eui, Object: values()}), "found no values"},
		{"an acknowledgement of an unknown device", frame(decoders.Frame{Identifier: eui, Kind: decoders.Ack}), "is not known"},
		{"an uplink without a payload", withDecoder(frame(decoders.Frame{Identifier: eui}), ""), ""},
		{"MAC commands", withDecoder(frame(decoders.Frame{Identifier: eui, HasFPort: true, Payload: []byte{2}}), ""), ""},
		{"a join", frame(decoders.Frame{Identifier: eui, Kind: decoders.Join}), ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			g := newGateway(t)
			tc.arrival.ReceivedAt = g.now
			outcome := g.ingest(tc.arrival)[0]
			if !strings.Contains(outcome.Refused, tc.want) || (outcome.Refused == "") != (tc.want == "") {
				t.Errorf("refused for %q, want %q", outcome.Refused, tc.want)
			}
			relaytest.Equal(t, "the number of points", len(outcome.Points), 0)
		})
	}
}

func TestADeviceOfAnotherAccountIsRefused(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.frame("n1-u1", values("temperature", 1.0)))
	for _, identifier := range []string{eui, "24:E1:24:13:6B:50:22:17"} {
		otherAccount := g.frame("n1-u2", values("temperature", 2.0))
		otherAccount.Account, otherAccount.Frame.Identifier = 2, identifier
		if outcome := g.ingest(otherAccount)[0]; !strings.Contains(outcome.Refused, "already been claimed by another account") {
			t.Errorf("%s: refused for %q, want a claim of another account", identifier, outcome.Refused)
		}
	}
	if _, err := g.DeviceByIdentifier(t.Context(), 2, eui); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("the device by its identifier: %v, want not found", err)
	}
	if _, err := g.Readings(t.Context(), iot.Query{Account: 2, DeviceID: g.device(1).ID}, iot.Metric); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("the readings: %v, want not found", err)
	}
	if _, err := g.Latest(t.Context(), 2, g.device(1).ID, iot.Metric); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("the latest readings: %v, want not found", err)
	}
}

func TestAllNotationsOfAMACAddressNameOneDevice(t *testing.T) {
	g := newGateway(t)
	var ids []string
	for i, identifier := range []string{"AA:BB:CC:DD:EE:FF", "aa-bb-cc-dd-ee-ff", " aabbccddeeff"} {
		a := g.frame(fmt.Sprint("n1-u", i), values("temperature", 1.0))
		a.Frame.Identifier, a.Frame.IsDevEUI = identifier, false
		ids = append(ids, g.mustStore(a)[0].DeviceID)
	}
	relaytest.Equal(t, "the devices of the frames", ids, []string{ids[0], ids[0], ids[0]})
	d, err := g.DeviceByIdentifier(t.Context(), 1, "AA:BB:CC:DD:EE:FF")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the identifier", d.Identifier, "aabbccddeeff")
}

func TestAnOlderReadingDoesNotReplaceTheLatestValue(t *testing.T) {
	g := newGateway(t)
	for i, step := range []struct {
		minutes int
		want    string
	}{{10, "temperature=0"}, {20, "temperature=1"}, {15, "temperature=1"}, {20, "temperature=3"}} {
		a := g.frame(fmt.Sprint("n1-u", i), values("temperature", float64(i)))
		a.Frame.SampleTime = g.now.Add(time.Duration(step.minutes-60) * time.Minute)
		g.mustStore(a)
		relaytest.Equal(t, fmt.Sprint("the latest readings after step ", i), g.latestValues(), []string{step.want})
	}
	relaytest.Equal(t, "the history", g.history(1), []string{"temperature=3", "temperature=2", "temperature=0"})
}

func TestPointsRefusedByTheStoreAreReportedAsLost(t *testing.T) {
	g := newGateway(t)
	g.readings.refuse = map[string]string{"humidity": "field type conflict", "uplink": "no"}
	a := g.frame("n1-u1", values("temperature", 1.0, "humidity", 2.0))
	a.Frame.FCnt, a.Frame.HasFCnt = 7, true
	outcome := g.ingest(a)[0]
	relaytest.Equal(t, "the refusal", outcome.Refused, "")
	relaytest.Equal(t, "the lost points", outcome.Lost, []string{"humidity: field type conflict", "uplink: no"})
	relaytest.Equal(t, "the number of stored points", len(outcome.Points), 1)
	relaytest.Equal(t, "the latest readings", g.latestValues(), []string{"temperature=1"})
}

func TestReadingsKeepTheirPlausibleTimes(t *testing.T) {
	g := newGateway(t)
	a := g.frame("n1-u1", nil)
	a.Frame.TimeNote, a.Frame.Warnings = "time: is not a time", []string{"rxInfo: is no list"}
	a.Frame.Samples = []decoders.Reading{
		{Key: "temperature", Value: 1, Time: g.now.Add(-time.Hour)},
		{Key: "temperature", Value: 2},
		{Key: "humidity", Value: 3, Time: time.Unix(5, 0)},
	}
	outcome := g.mustStore(a)[0]
	relaytest.Equal(t, "the notes", outcome.Notes, decoders.Notes{
		"time: is not a time; the time of receipt is used", "rxInfo: is no list",
		"humidity: time 1970-01-01T00:00:05Z is not plausible; the frame's time is used",
	})
	var times []time.Time
	for _, p := range outcome.Points {
		times = append(times, p.Time)
	}
	relaytest.Equal(t, "the times of the readings", times, []time.Time{g.now.Add(-time.Hour), g.now, g.now})
}

func TestInfiniteValuesAreNotStored(t *testing.T) {
	g := newGateway(t)
	outcome := g.ingest(g.frame("n1-u1", values("temperature", math.Inf(1), "humidity", 2.0)))[0]
	relaytest.Equal(t, "the refusal", outcome.Refused, "")
	relaytest.Equal(t, "the number of points", len(outcome.Points), 1)
	relaytest.Equal(t, "the notes", outcome.Notes, decoders.Notes{"temperature: is not a finite number"})
}

func TestAnEmptyBatchHasNoOutcomes(t *testing.T) {
	newGateway(t).ingest()
}
