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

// payload returns an uplink with bytes on port 2.
func (g *gateway) payload(record string, b ...byte) iot.Arrival {
	a := g.frame(record, nil)
	a.Frame.Object, a.Frame.Payload, a.Frame.FPort, a.Frame.HasFPort = nil, b, 2, true
	return a
}

func (g *gateway) try(t iot.Trial, arrivals ...iot.Arrival) []iot.TrialResult {
	g.t.Helper()
	out, err := g.Try(g.t.Context(), t, arrivals)
	relaytest.NoError(g.t, err)
	return out
}

// differ formats differences as "key effect old>new", with a star after the latest.
func differ(all []iot.Difference) string {
	var out []string
	for _, d := range all {
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
		out = append(out, fmt.Sprintf("%s %s %s>%s%s", d.Key, d.Effect, text(d.Old), text(d.New), star))
	}
	return strings.Join(out, ", ")
}

func TestDecodersAreTried(t *testing.T) {
	g := newGateway(t)
	g.stored(g.frame("r1", values("temperature", 20.0)))
	device := g.device(1).ID
	sensors, err := g.Sensors(t.Context(), 1, device, "temperature")
	relaytest.NoError(t, err)
	_, err = g.ChangeSensor(t.Context(), 1, sensors[0].ID, iot.SensorChange{Slope: new(2.0), Offset: new(1.0)})
	relaytest.NoError(t, err)
	for _, tc := range []struct {
		name    string
		trial   iot.Trial
		arrival iot.Arrival
		// values and stored are "key=value" of values and points; said is a part of any text
		values, stored, difference, said string
	}{
		{"a stored decoder, as a new device would take it", iot.Trial{DecoderID: "d1"}, g.frame("x", values("temperature", 5.0)), "temperature=5", "temperature=5", "", ""},
		{"a device's decoder, with its slope and offset, against what is stored", iot.Trial{DeviceID: device}, g.frame("x", values("temperature", 5.0)), "temperature=5", "temperature=11", "temperature changed 20>11*", ""},
		{
			"a source in the place of a device's, with its sensors", iot.Trial{DeviceID: device, Codec: "expr", Source: "temperature = bytes[0] + 0.5"}, g.payload("x", 3),
			"temperature=3.5", "temperature=8", "temperature changed 20>8*", "",
		},
		{"a source alone", iot.Trial{Codec: "expr", Source: "a = bytes[0] * 1.0"}, g.payload("x", 3), "a=3", "", "", ""},
		{"a source and keys", iot.Trial{Codec: "expr", Source: "a = bytes[0] * 1.0", Sensors: []iot.Mapping{{Key: "a", SensorTypeID: "state"}}}, g.payload("x", 3), "a=3", "a=3", "", ""},
		{"a codec's failure names its line", iot.Trial{Codec: "javascript", Source: "function decodeUplink(i) {\n  return {data: i.none.x};\n}"}, g.payload("x", 3), "", "", "", "line 2, column"},
		{"a codec's own errors and warnings", iot.Trial{Codec: "javascript", Source: "function decodeUplink(i) { return {data: {a: 1}, warnings: ['low battery'], errors: ['bad checksum']}; }"}, g.payload("x", 3), "a=1", "", "", "bad checksum; low battery"},
		{"keys that nothing is mapped to", iot.Trial{DecoderID: "d1"}, g.frame("x", values("wind", 5.0)), "wind=5", "", "", "no sensor is mapped to any key of the frame: wind"},
		{"a frame with nothing in it", iot.Trial{DecoderID: "d1"}, g.payload("x"), "", "", "", "the frame has no readings"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.trial.Account = 1
			got := g.try(tc.trial, tc.arrival)[0]
			var read []string
			for _, r := range got.Values {
				read = append(read, fmt.Sprint(r.Key, "=", r.Value))
			}
			var stored []string
			for _, p := range got.Points {
				stored = append(stored, fmt.Sprint(p.Key, "=", p.Value))
			}
			said := strings.Join(append(append(append(got.Notes, got.Refused), got.Errors...), got.Warnings...), "; ")
			relaytest.Equal(t, "the decoded values", strings.Join(read, " "), tc.values)
			relaytest.Equal(t, "the readings", strings.Join(stored, " "), tc.stored)
			relaytest.Equal(t, "the difference", differ(got.Readings), tc.difference)
			if !strings.Contains(said, tc.said) {
				t.Errorf("reasons and notes %q lack %q", said, tc.said)
			}
		})
	}
	if got := strings.Join(g.history(1), " "); got != "temperature=20" {
		t.Errorf("trying has stored %s", got)
	}
}

// A codec's clock has the frame's time wherever the codec runs: the network's time, or else the
// device's time, or else the time of receipt.
func TestCodecsAreToldTheFramesTime(t *testing.T) {
	const source = "function decodeUplink(input) { return {data: {temperature: input.recvTime.getTime() / 1000, humidity: Date.now() / 1000}} }"
	g := newGateway(t)
	_, err := g.ChangeDecoder(t.Context(), 1, "d1", iot.DecoderChange{Codec: new("javascript"), Source: new(source)})
	relaytest.NoError(t, err)
	sampled, heard := g.now.Add(-3*time.Hour), g.now.Add(-2*time.Second)
	for i, tc := range []struct {
		name            string
		sample, network time.Time
		want            time.Time
	}{
		{"neither says", time.Time{}, time.Time{}, g.now},
		{"the network says", time.Time{}, heard, heard},
		{"the sample says", sampled, time.Time{}, sampled},
		{"both say", sampled, heard, heard},
		{"the network's clock is wrong", sampled, time.Unix(5, 0), sampled},
		{"both clocks are wrong", time.Unix(6, 0), time.Unix(5, 0), g.now},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := g.payload(fmt.Sprint("r", i), 1)
			a.Frame.SampleTime, a.Frame.NetworkTime = tc.sample, tc.network
			tried := g.try(iot.Trial{Account: 1, DecoderID: "d1"}, a)[0]
			g.stored(a)
			for of, points := range map[string][]iot.Point{"tried": tried.Points, "previewed": g.preview(a)[0].Points, "ingested": g.ingest(a)[0].Points} {
				var got []float64
				for _, p := range points {
					got = append(got, p.Value)
				}
				relaytest.Equal(t, "the values, "+of, got, []float64{float64(tc.want.Unix()), float64(tc.want.Unix())})
			}
		})
	}
}

// Compiling has a time limit. On a busy machine a source that was compiled before may exceed it.
func TestATrialCompilesOnce(t *testing.T) {
	g := newGateway(t)
	compiled := 0
	compile := func(codec, source string, raw bool) (decoders.Decoder, error) {
		if compiled++; compiled > 1 {
			return nil, errors.New("it takes too long")
		}
		return catalogtest.Compile(codec, source, raw)
	}
	trial := iot.Trial{Codec: "javascript", Source: "function decodeUplink(i) { return {data: {t: i.bytes[0]}}; }"}
	out, err := iot.TrySource(t.Context(), compile, trial, []iot.Arrival{g.payload("f1", 7)})
	relaytest.NoError(t, err)
	if len(out) != 1 {
		t.Fatalf("%d results, want 1", len(out))
	}
	relaytest.Equal(t, "the number of values", len(out[0].Values), 1)
	if _, err := iot.TrySource(t.Context(), compile, trial, nil); relay.KindOf(err) != relay.KindInvalid {
		t.Errorf("a source that takes too long: %v", err)
	}
}

func TestWhatCannotBeTriedIsRefused(t *testing.T) {
	g := newGateway(t)
	for _, tc := range []struct {
		name  string
		trial iot.Trial
		kind  relay.Kind
		said  string
	}{
		{"nothing", iot.Trial{}, relay.KindInvalid, "give a codec"},
		{"a source that does not compile", iot.Trial{Codec: "javascript", Source: "function decodeUplink(\n{"}, relay.KindInvalid, "line 2, column"},
		{"a codec there is not", iot.Trial{Codec: "python"}, relay.KindInvalid, "python"},
		{"a decoder there is not", iot.Trial{DecoderID: "none"}, relay.KindNotFound, ""},
		{"a device there is not", iot.Trial{DeviceID: "none"}, relay.KindNotFound, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.trial.Account = 1
			_, err := g.Try(t.Context(), tc.trial, nil)
			if relay.KindOf(err) != tc.kind || !strings.Contains(fmt.Sprint(relay.FieldsOf(err)), tc.said) {
				t.Errorf("%v %v", err, relay.FieldsOf(err))
			}
		})
	}
}

// mended changes account 1's decoder d1.
func (g *gateway) mended(source string) {
	g.t.Helper()
	_, err := g.ChangeDecoder(g.t.Context(), 1, "d1", iot.DecoderChange{Codec: new("expr"), Source: &source})
	relaytest.NoError(g.t, err)
}

func (g *gateway) preview(arrivals ...iot.Arrival) []iot.PreviewedFrame {
	g.t.Helper()
	out, err := g.NewPreview().Frames(g.t.Context(), arrivals)
	relaytest.NoError(g.t, err)
	return out
}

func TestADryRunShowsTheDifferenceAndChangesNothing(t *testing.T) {
	g := newGateway(t)
	g.mended("temperature = bytes[0] * 1.0\nhumidity = bytes[9] * 1.0")
	first, second := g.payload("r1", 1, 41), g.payload("r2", 2, 42)
	second.ReceivedAt = g.now.Add(time.Minute)
	g.stored(first, second)
	unknown := g.payload("r3", 7, 47)
	unknown.Frame.Identifier = "24e124136b500000"
	copied := second
	copied.Record, copied.Frame.DedupID = "r4", "r2"

	t.Run("nothing differs while the decoder is unchanged", func(t *testing.T) {
		for i, f := range g.preview(first, second) {
			if iot.Changes(f.Readings) || f.Refused != "" {
				t.Errorf("frame %d: refused %q, difference %q; want none", i, f.Refused, differ(f.Readings))
			}
		}
	})
	g.mended("temperature = bytes[0] == 1 ? 1.0 : bytes[0] * 10.0\nhumidity = bytes[1] * 1.0")
	got := g.preview(first, second, unknown, copied)
	for i, want := range []string{
		"temperature unchanged 1>1, humidity added ->41*",
		"temperature changed 2>20*, humidity added ->42*",
		"temperature added ->70*, humidity added ->47*",
		"",
	} {
		if differ(got[i].Readings) != want {
			t.Errorf("frame %d: %s, want %s", i, differ(got[i].Readings), want)
		}
	}
	relaytest.Equal(t, "whether the fourth frame is a duplicate", got[3].Duplicate, true)
	relaytest.Equal(t, "device and sensor of the third frame", []string{got[2].DeviceID, got[2].Readings[0].SensorID}, []string{"", ""})
	if _, err := g.DeviceByIdentifier(t.Context(), 1, unknown.Frame.Identifier); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("a rehearsal made a device: %v", err)
	}
	if h := strings.Join(g.history(1), " "); h != "temperature=2 temperature=1" {
		t.Errorf("a rehearsal has stored %s", h)
	}

	t.Run("what a frame gives no more is said to stay", func(t *testing.T) {
		g.mended("humidity = bytes[1] * 1.0")
		f := g.preview(second)[0]
		if differ(f.Readings) != "humidity added ->42*, temperature stays 2>-*" {
			t.Errorf("the readings are %q, want the humidity added and that the temperature stays", differ(f.Readings))
		}
	})
	t.Run("a decoder that fails shows why, and what stays", func(t *testing.T) {
		g.mended("temperature = bytes[99] * 1.0")
		f := g.preview(second)[0]
		if f.Refused == "" || differ(f.Readings) != "temperature stays 2>-*" {
			t.Errorf("refused %q, readings %q; want a reason, and that the temperature stays", f.Refused, differ(f.Readings))
		}
	})
	t.Run("what was told becomes true", func(t *testing.T) {
		g.mended("temperature = bytes[0] * 10.0")
		before := g.preview(first, second)
		g.stored(first, second)
		for i, f := range g.preview(first, second) {
			if iot.Changes(f.Readings) || !iot.Changes(before[i].Readings) {
				t.Errorf("frame %d: %s", i, differ(f.Readings))
			}
		}
	})
}

func TestADryRunOfFramesThatNobodyClaimsAnyMoreTakesTheFirst(t *testing.T) {
	g := newGateway(t)
	a, b := g.payload("r1", 1), g.payload("r2", 2)
	a.Frame.DedupID, b.Frame.DedupID = "same", "same"
	r := g.NewPreview()
	one, err := r.Frames(t.Context(), []iot.Arrival{a})
	relaytest.NoError(t, err)
	two, err := r.Frames(t.Context(), []iot.Arrival{b, a})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "which frames are duplicates", []bool{one[0].Duplicate, two[0].Duplicate, two[1].Duplicate}, []bool{false, true, false})
}

func TestADryRunReadsLongHistories(t *testing.T) {
	g := newGateway(t)
	g.mended("temperature = bytes[0] * 1.0")
	var all []iot.Arrival
	for i := range 2*iot.MaxReadings + 7 {
		a := g.payload(fmt.Sprint("r", i), byte(i))
		a.ReceivedAt = g.now.Add(time.Duration(i) * time.Second)
		all = append(all, a)
	}
	g.stored(all...)
	for i, f := range g.preview(all...) {
		if iot.Changes(f.Readings) || len(f.Readings) != 1 {
			t.Fatalf("frame %d: %s", i, differ(f.Readings))
		}
	}
}

func TestADryRunReadsFramesThatLieFarApart(t *testing.T) {
	g := newGateway(t)
	g.mended("temperature = bytes[0] * 1.0")
	var all []iot.Arrival
	for i := range 5 {
		a := g.payload(fmt.Sprint("r", i), byte(i))
		a.ReceivedAt = g.now.Add(-time.Duration(i) * 5 * time.Hour)
		all = append(all, a)
	}
	g.stored(all...)
	g.mended("temperature = bytes[0] * 2.0")
	for i, f := range g.preview(all...) {
		want := fmt.Sprintf("temperature changed %d>%d", i, 2*i)
		if i == 0 {
			want = "temperature unchanged 0>0*"
		}
		if differ(f.Readings) != want {
			t.Errorf("frame %d: %s, want %s", i, differ(f.Readings), want)
		}
	}
}

func TestADryRunKeepsTheLimits(t *testing.T) {
	g := newGateway(t)
	g.o.MaxSeries = 1
	g.start()
	f := g.preview(g.frame("r1", values("temperature", 1.0)))[0]
	if !strings.Contains(f.Refused, "no more than 1 series") {
		t.Errorf("beyond the number of series: the reason is %q", f.Refused)
	}
	ack := g.frame("r2", nil)
	ack.Frame.Kind = decoders.Ack
	if f := g.preview(ack)[0]; !strings.Contains(f.Refused, "is not known") {
		t.Errorf("an acknowledgement of an unknown device: the reason is %q", f.Refused)
	}
}
