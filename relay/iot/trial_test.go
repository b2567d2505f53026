package iot_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/catalog/catalogtest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// payload returns an uplink with a payload on port 2.
func (g *gateway) payload(record string, payload ...byte) iot.Arrival {
	a := g.frame(record, nil)
	a.Frame.Object, a.Frame.Payload, a.Frame.FPort, a.Frame.HasFPort = nil, payload, 2, true
	return a
}

func (g *gateway) try(trial iot.Trial, arrivals ...iot.Arrival) []iot.TrialResult {
	g.t.Helper()
	results, err := g.Try(g.t.Context(), trial, arrivals)
	relaytest.NoError(g.t, err)
	return results
}

// formatDifferences formats differences as "key effect old>new", with a star if the reading is the
// latest one.
func formatDifferences(differences []iot.Difference) string {
	var list []string
	for _, d := range differences {
		text := func(p *iot.Point) string {
			switch {
			case p == nil:
				return "-"
			case p.IsText:
				return p.Text
			}
			return fmt.Sprint(p.Value)
		}
		star := ""
		if d.Latest {
			star = "*"
		}
		list = append(list, fmt.Sprintf("%s %s %s>%s%s", d.Key, d.Effect, text(d.Old), text(d.New), star))
	}
	return strings.Join(list, ", ")
}

func TestATrialReturnsValuesReadingsAndDifferences(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.frame("r1", values("temperature", 20.0)))
	device := g.device(1).ID
	sensors, err := g.Sensors(t.Context(), 1, device, "temperature")
	relaytest.NoError(t, err)
	_, err = g.ChangeSensor(t.Context(), 1, sensors[0].ID, iot.SensorChange{Slope: new(2.0), Offset: new(1.0)})
	relaytest.NoError(t, err)
	for _, tc := range []struct {
		name    string
		trial   iot.Trial
		arrival iot.Arrival
		// values and stored list values and points as "key=value". message is a part of the
		// reasons and notes.
		values, stored, difference, message string
	}{
		{"a stored decoder without a device", iot.Trial{DecoderID: "d1"}, g.frame("x", values("temperature", 5.0)), "temperature=5", "temperature=5", "", ""},
		{"a device's decoder with slope and offset", iot.Trial{DeviceID: device}, g.frame("x", values("temperature", 5.0)), "temperature=5", "temperature=11", "temperature changed 20>11*", ""},
		{
			"a source instead of the device's, with its sensors", iot.Trial{DeviceID: device, Codec: "expr", Source: "temperature = bytes[0] + 0.5"}, g.payload("x", 3),
			"temperature=3.5", "temperature=8", "temperature changed 20>8*", "",
		},
		{"a source alone", iot.Trial{Codec: "expr", Source: "a = bytes[0] * 1.0"}, g.payload("x", 3), "a=3", "", "", ""},
		{"a source and keys", iot.Trial{Codec: "expr", Source: "a = bytes[0] * 1.0", Sensors: []iot.Mapping{{Key: "a", SensorTypeID: "state"}}}, g.payload("x", 3), "a=3", "a=3", "", ""},
		{"a failure of a codec with its line", iot.Trial{Codec: "javascript", Source: "function decodeUplink(i) {\n  return {data: i.none.x};\n}"}, g.payload("x", 3), "", "", "", "line 2, column"},
		{"errors and warnings of a codec", iot.Trial{Codec: "javascript", Source: "function decodeUplink(i) { return {data: {a: 1}, warnings: ['low battery'], errors: ['bad checksum']}; }"}, g.payload("x", 3), "a=1", "", "", "bad checksum; low battery"},
		{"keys without a mapping", iot.Trial{DecoderID: "d1"}, g.frame("x", values("wind", 5.0)), "wind=5", "", "", "no sensor is mapped to any key of the frame: wind"},
		{"an empty frame", iot.Trial{DecoderID: "d1"}, g.payload("x"), "", "", "", "the frame has no readings"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.trial.Account = 1
			got := g.try(tc.trial, tc.arrival)[0]
			var decoded []string
			for _, r := range got.Values {
				decoded = append(decoded, fmt.Sprint(r.Key, "=", r.Value))
			}
			var stored []string
			for _, p := range got.Points {
				stored = append(stored, fmt.Sprint(p.Key, "=", p.Value))
			}
			message := strings.Join(append(append(append(got.Notes, got.Refused), got.Errors...), got.Warnings...), "; ")
			relaytest.Equal(t, "the decoded values", strings.Join(decoded, " "), tc.values)
			relaytest.Equal(t, "the readings", strings.Join(stored, " "), tc.stored)
			relaytest.Equal(t, "the difference", formatDifferences(got.Readings), tc.difference)
			if !strings.Contains(message, tc.message) {
				t.Errorf("reasons and notes %q, want %q in them", message, tc.message)
			}
		})
	}
	if got := strings.Join(g.history(1), " "); got != "temperature=20" {
		t.Errorf("history after the trials %q, want temperature=20", got)
	}
}

// The clock of a codec has the frame's time: the network's time if it is plausible, else the device's
// time, else the time of receipt.
func TestACodecGetsTheTimeOfTheFrame(t *testing.T) {
	const source = "function decodeUplink(input) { return {data: {temperature: input.recvTime.getTime() / 1000, humidity: Date.now() / 1000}} }"
	g := newGateway(t)
	_, err := g.ChangeDecoder(t.Context(), 1, "d1", iot.DecoderChange{Codec: new("javascript"), Source: new(source)})
	relaytest.NoError(t, err)
	sampledAt, heardAt := g.now.Add(-3*time.Hour), g.now.Add(-2*time.Second)
	for i, tc := range []struct {
		name            string
		sample, network time.Time
		want            time.Time
	}{
		{"no times", time.Time{}, time.Time{}, g.now},
		{"the network's time", time.Time{}, heardAt, heardAt},
		{"the sample's time", sampledAt, time.Time{}, sampledAt},
		{"both times", sampledAt, heardAt, heardAt},
		{"the network's clock is wrong", sampledAt, time.Unix(5, 0), sampledAt},
		{"both clocks are wrong", time.Unix(6, 0), time.Unix(5, 0), g.now},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := g.payload(fmt.Sprint("r", i), 1)
			a.Frame.SampleTime, a.Frame.NetworkTime = tc.sample, tc.network
			tried := g.try(iot.Trial{Account: 1, DecoderID: "d1"}, a)[0]
			g.mustStore(a)
			for label, points := range map[string][]iot.Point{"tried": tried.Points, "previewed": g.preview(a)[0].Points, "ingested": g.ingest(a)[0].Points} {
				var got []float64
				for _, p := range points {
					got = append(got, p.Value)
				}
				relaytest.Equal(t, "the values "+label, got, []float64{float64(tc.want.Unix()), float64(tc.want.Unix())})
			}
		})
	}
}

// Compiling has a time limit. On a busy machine, compiling the same source again may exceed it.
func TestATrialCompilesOnce(t *testing.T) {
	g := newGateway(t)
	compiled := 0
	compile := func(codec, source string, raw bool) (decoders.Decoder, error) {
		if compiled++; compiled > 1 {
			return nil, errors.New("the compilation takes too long")
		}
		return catalogtest.Compile(codec, source, raw)
	}
	trial := iot.Trial{Codec: "javascript", Source: "function decodeUplink(i) { return {data: {t: i.bytes[0]}}; }"}
	results, err := iot.TrySource(t.Context(), compile, trial, []iot.Arrival{g.payload("f1", 7)})
	relaytest.NoError(t, err)
	if len(results) != 1 {
		t.Fatalf("%d results, want 1", len(results))
	}
	relaytest.Equal(t, "the number of values", len(results[0].Values), 1)
	if _, err := iot.TrySource(t.Context(), compile, trial, nil); relay.KindOf(err) != relay.KindInvalid {
		t.Errorf("a source that takes too long: %v", err)
	}
}

func TestAnInvalidTrialIsRefused(t *testing.T) {
	g := newGateway(t)
	for _, tc := range []struct {
		name    string
		trial   iot.Trial
		kind    relay.Kind
		message string
	}{
		{"an empty trial", iot.Trial{}, relay.KindInvalid, "Name a decoder, a device with a decoder, or a codec."},
		{"a source that does not compile", iot.Trial{Codec: "javascript", Source: "function decodeUplink(\n{"}, relay.KindInvalid, "line 2, column"},
		{"an unknown codec", iot.Trial{Codec: "python"}, relay.KindInvalid, "python"},
		{"an unknown decoder", iot.Trial{DecoderID: "none"}, relay.KindNotFound, ""},
		{"an unknown device", iot.Trial{DeviceID: "none"}, relay.KindNotFound, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.trial.Account = 1
			_, err := g.Try(t.Context(), tc.trial, nil)
			if relay.KindOf(err) != tc.kind || !strings.Contains(fmt.Sprint(relay.FieldsOf(err)), tc.message) {
				t.Errorf("got %v %v, want kind %v and %q", err, relay.FieldsOf(err), tc.kind, tc.message)
			}
		})
	}
}

// setSource replaces the source of account 1's decoder d1.
func (g *gateway) setSource(source string) {
	g.t.Helper()
	_, err := g.ChangeDecoder(g.t.Context(), 1, "d1", iot.DecoderChange{Codec: new("expr"), Source: &source})
	relaytest.NoError(g.t, err)
}

func (g *gateway) preview(arrivals ...iot.Arrival) []iot.PreviewedFrame {
	g.t.Helper()
	frames, err := g.NewPreview().Frames(g.t.Context(), arrivals)
	relaytest.NoError(g.t, err)
	return frames
}

func TestAPreviewReturnsDifferencesAndChangesNothing(t *testing.T) {
	g := newGateway(t)
	g.setSource("temperature = bytes[0] * 1.0\nhumidity = bytes[9] * 1.0")
	frame1, frame2 := g.payload("r1", 1, 41), g.payload("r2", 2, 42)
	frame2.ReceivedAt = g.now.Add(time.Minute)
	g.mustStore(frame1, frame2)
	unknown := g.payload("r3", 7, 47)
	unknown.Frame.Identifier = "24e124136b500000"
	copied := frame2
	copied.RecordID, copied.Frame.DedupID = "r4", "r2"

	t.Run("an unchanged decoder gives no differences", func(t *testing.T) {
		for i, f := range g.preview(frame1, frame2) {
			if iot.HasChanges(f.Readings) || f.Refused != "" {
				t.Errorf("frame %d: refused for %q, difference %q; want none", i, f.Refused, formatDifferences(f.Readings))
			}
		}
	})
	g.setSource("temperature = bytes[0] == 1 ? 1.0 : bytes[0] * 10.0\nhumidity = bytes[1] * 1.0")
	got := g.preview(frame1, frame2, unknown, copied)
	for i, want := range []string{
		"temperature unchanged 1>1, humidity added ->41*",
		"temperature changed 2>20*, humidity added ->42*",
		"temperature added ->70*, humidity added ->47*",
		"",
	} {
		if formatDifferences(got[i].Readings) != want {
			t.Errorf("frame %d: %s, want %s", i, formatDifferences(got[i].Readings), want)
		}
	}
	relaytest.Equal(t, "whether the fourth frame is a duplicate", got[3].Duplicate, true)
	relaytest.Equal(t, "device and sensor of the third frame", []string{got[2].DeviceID, got[2].Readings[0].SensorID}, []string{"", ""})
	if _, err := g.DeviceByIdentifier(t.Context(), 1, unknown.Frame.Identifier); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("the preview created a device: %v", err)
	}
	if history := strings.Join(g.history(1), " "); history != "temperature=2 temperature=1" {
		t.Errorf("history after the preview %q, want the two stored readings", history)
	}

	t.Run("a reading without a new value stays", func(t *testing.T) {
		g.setSource("humidity = bytes[1] * 1.0")
		f := g.preview(frame2)[0]
		if formatDifferences(f.Readings) != "humidity added ->42*, temperature stays 2>-*" {
			t.Errorf("differences %q, want the humidity added and the temperature unchanged", formatDifferences(f.Readings))
		}
	})
	t.Run("a failing decoder gives a reason, and readings stay", func(t *testing.T) {
		g.setSource("temperature = bytes[99] * 1.0")
		f := g.preview(frame2)[0]
		if f.Refused == "" || formatDifferences(f.Readings) != "temperature stays 2>-*" {
			t.Errorf("refused for %q, differences %q; want a reason, and that the temperature stays", f.Refused, formatDifferences(f.Readings))
		}
	})
	t.Run("the previewed differences are stored", func(t *testing.T) {
		g.setSource("temperature = bytes[0] * 10.0")
		previewed := g.preview(frame1, frame2)
		g.mustStore(frame1, frame2)
		for i, f := range g.preview(frame1, frame2) {
			if iot.HasChanges(f.Readings) || !iot.HasChanges(previewed[i].Readings) {
				t.Errorf("frame %d: differences %q, want some before the frames are stored and none after", i, formatDifferences(f.Readings))
			}
		}
	})
}

func TestAPreviewTakesTheFirstOfFramesWithoutAClaim(t *testing.T) {
	g := newGateway(t)
	a, b := g.payload("r1", 1), g.payload("r2", 2)
	a.Frame.DedupID, b.Frame.DedupID = "same", "same"
	preview := g.NewPreview()
	batch1, err := preview.Frames(t.Context(), []iot.Arrival{a})
	relaytest.NoError(t, err)
	batch2, err := preview.Frames(t.Context(), []iot.Arrival{b, a})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the duplicates", []bool{batch1[0].Duplicate, batch2[0].Duplicate, batch2[1].Duplicate}, []bool{false, true, false})
}

func TestAPreviewReadsLongHistories(t *testing.T) {
	g := newGateway(t)
	g.setSource("temperature = bytes[0] * 1.0")
	var arrivals []iot.Arrival
	for i := range 2*iot.MaxReadings + 7 {
		a := g.payload(fmt.Sprint("r", i), byte(i))
		a.ReceivedAt = g.now.Add(time.Duration(i) * time.Second)
		arrivals = append(arrivals, a)
	}
	g.mustStore(arrivals...)
	for i, f := range g.preview(arrivals...) {
		if iot.HasChanges(f.Readings) || len(f.Readings) != 1 {
			t.Fatalf("frame %d: differences %q, want one unchanged reading", i, formatDifferences(f.Readings))
		}
	}
}

func TestAPreviewReadsFramesFarApart(t *testing.T) {
	g := newGateway(t)
	g.setSource("temperature = bytes[0] * 1.0")
	var arrivals []iot.Arrival
	for i := range 5 {
		a := g.payload(fmt.Sprint("r", i), byte(i))
		a.ReceivedAt = g.now.Add(-time.Duration(i) * 5 * time.Hour)
		arrivals = append(arrivals, a)
	}
	g.mustStore(arrivals...)
	g.setSource("temperature = bytes[0] * 2.0")
	for i, f := range g.preview(arrivals...) {
		want := fmt.Sprintf("temperature changed %d>%d", i, 2*i)
		if i == 0 {
			want = "temperature unchanged 0>0*"
		}
		if formatDifferences(f.Readings) != want {
			t.Errorf("frame %d: differences %s, want %s", i, formatDifferences(f.Readings), want)
		}
	}
}

func TestAPreviewRespectsTheLimits(t *testing.T) {
	g := newGateway(t)
	g.options.MaxSeries = 1
	g.start()
	f := g.preview(g.frame("r1", values("temperature", 1.0)))[0]
	if !strings.Contains(f.Refused, "no more than 1 series") {
		t.Errorf("beyond the number of series: refused for %q", f.Refused)
	}
	ack := g.frame("r2", nil)
	ack.Frame.Kind = decoders.Ack
	if f := g.preview(ack)[0]; !strings.Contains(f.Refused, "is not known") {
		t.Errorf("an acknowledgement of an unknown device: refused for %q", f.Refused)
	}
}
