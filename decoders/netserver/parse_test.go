package netserver

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/penstock/penstock/decoders"
)

// FuzzParse checks for any body that Parse does not panic, that the number of frames is
// bounded, that each frame has a sender, a kind and a device, that errors have documented
// types, and that a second call returns as many frames.
func FuzzParse(f *testing.F) {
	for _, path := range cases(f) {
		a, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		p := post(f, a)
		f.Add(p.Body, p.Query.Get("event"), p.DeviceID)
	}
	f.Fuzz(func(t *testing.T, body []byte, event, device string) {
		p := Post{Body: body, DeviceID: device, Query: map[string][]string{"event": {event}}}
		frames, err := Parse(p)
		checkErrorType(t, err)
		if len(frames) > maxFrames {
			t.Fatalf("%d frames", len(frames))
		}
		for _, fr := range frames {
			checkFrame(t, fr)
		}
		sender, inspectErr := Inspect(p)
		if inspectErr == nil && json.Valid(body) && Detect(p) != sender {
			t.Fatalf("Detect returns %q, Inspect %q", Detect(p), sender)
		}
		sameFrames, _ := Parse(p)
		if len(sameFrames) != len(frames) {
			t.Fatalf("the second call returns %d frames, the first %d", len(sameFrames), len(frames))
		}
	})
}

func checkErrorType(t *testing.T, err error) {
	var e *decoders.Error
	var u *UnsupportedError
	if err != nil && !errors.Is(err, ErrProtobuf) && !errors.As(err, &e) && !errors.As(err, &u) {
		t.Fatalf("an error of an undocumented type: %v", err)
	}
}

func checkFrame(t *testing.T, f decoders.Frame) {
	switch {
	case f.Sender == "" || f.Kind == "" || f.Identifier == "":
		t.Fatalf("a frame without a sender, a kind or a device: %q, %q, %q", f.Sender, f.Kind, f.Identifier)
	case f.IsDevEUI && len(f.Identifier) != 16:
		t.Fatalf("an invalid devEUI: %q", f.Identifier)
	case f.FPort < 0 || f.FPort > 255 || f.FCnt < 0:
		t.Fatalf("a port or counter out of bounds: %d, %d", f.FPort, f.FCnt)
	case len(f.Gateways) > maxGateways || len(f.Warnings) > maxWarnings:
		t.Fatalf("too many gateways or warnings: %d, %d", len(f.Gateways), len(f.Warnings))
	}
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, file string }{
		{"ChirpStackV4", "testdata/chirpstack4-up.txtar"},
		{"ChirpStackV4Decoded", "testdata/chirpstack4-up-decoded.txtar"},
		{"TheThingsStack", "testdata/tts-uplink-bench.txtar"},
		{"Generic", "testdata/generic-flat.txtar"},
		{"ChirpStackV3", "testdata/chirpstack3-up.txtar"},
		{"ThingPark", "testdata/thingpark-uplink.txtar"},
		{"ThingParkXML", "testdata/thingpark-xml.txtar"},
		{"LORIOT", "testdata/loriot-gw.txtar"},
		{"SigfoxForm", "testdata/sigfox-form.txtar"},
	} {
		b.Run(c.name, func(b *testing.B) {
			bench(b, c.file, func(p Post) error { _, err := Parse(p); return err })
		})
	}
}

func BenchmarkInspect(b *testing.B) {
	bench(b, "testdata/chirpstack4-up.txtar", func(p Post) error { _, err := Inspect(p); return err })
}

func bench(b *testing.B, file string, read func(Post) error) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		b.Fatal(err)
	}
	p := post(b, a)
	if p.Sender, err = Inspect(p); err != nil { // as in an entry of the journal
		b.Fatal(err)
	}
	b.SetBytes(int64(len(p.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := read(p); err != nil {
			b.Fatal(err)
		}
	}
}
