package netserver

import (
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/rogpeppe/go-internal/txtar"
)

// fuzzParser runs one parser on any body, seeded with its cases. It checks that the parser does
// not panic, that the number of frames is bounded, that each frame is valid and has no values
// decoded from ciphertext, that errors have documented types, and that a frame does not change
// if the body's buffer is reused.
func fuzzParser(f *testing.F, s Sender) {
	row := rowOf(s)
	for _, path := range cases(f) {
		a, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if p := post(f, a); Detect(p) == s {
			f.Add(p.Body, p.Query.Encode())
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, query string) {
		q, _ := url.ParseQuery(query)
		p := Post{Body: append([]byte(nil), body...), Query: q, ReceivedAt: time.Unix(1772366400, 0)}
		frames, err := row.read(p)
		checkErrorType(t, err)
		if isSyntax(err) && s != SenML && s != KPN && len(frames) > 0 {
			t.Fatal("Parse returns frames for a body that is not valid JSON")
		}
		if len(frames) > maxFrames {
			t.Fatalf("%d frames", len(frames))
		}
		for _, fr := range frames {
			checkFrame(t, fr)
			checkLimits(t, fr)
		}
		want := render(t, withoutObjects(frames))
		clear(p.Body)
		if render(t, withoutObjects(frames)) != want {
			t.Fatal("a frame aliases its body")
		}
	})
}

func checkLimits(t *testing.T, f decoders.Frame) {
	switch {
	case len(f.Samples) > maxSamples:
		t.Fatalf("%d samples", len(f.Samples))
	case f.Encrypted && f.Object != nil && f.Sender == string(LORIOT):
		t.Fatal("the frame has values decoded from ciphertext")
	case f.Battery != nil && (*f.Battery < 0 || *f.Battery > 100) && f.Sender != string(ChirpStackV4) && f.Sender != string(TheThingsStack):
		t.Fatalf("a battery of %v %%", *f.Battery)
	}
}

// withoutObjects copies frames without their objects: JSON cannot represent infinities.
func withoutObjects(frames []decoders.Frame) []decoders.Frame {
	copies := append([]decoders.Frame(nil), frames...)
	for i := range copies {
		copies[i].Object = nil
	}
	return copies
}

func FuzzChirpStackV4(f *testing.F)   { fuzzParser(f, ChirpStackV4) }
func FuzzTheThingsStack(f *testing.F) { fuzzParser(f, TheThingsStack) }
func FuzzGeneric(f *testing.F)        { fuzzParser(f, Generic) }
func FuzzChirpStackV3(f *testing.F)   { fuzzParser(f, ChirpStackV3) }
func FuzzTTNv2(f *testing.F)          { fuzzParser(f, TTNv2) }
func FuzzHelium(f *testing.F)         { fuzzParser(f, Helium) }
func FuzzThingPark(f *testing.F)      { fuzzParser(f, ThingPark) }
func FuzzLORIOT(f *testing.F)         { fuzzParser(f, LORIOT) }
func FuzzCRA(f *testing.F)            { fuzzParser(f, CRA) }
func FuzzEverynet(f *testing.F)       { fuzzParser(f, Everynet) }
func FuzzKerlink(f *testing.F)        { fuzzParser(f, Kerlink) }
func FuzzNetmore(f *testing.F)        { fuzzParser(f, Netmore) }
func FuzzKPN(f *testing.F)            { fuzzParser(f, KPN) }
func FuzzSigfox(f *testing.F)         { fuzzParser(f, Sigfox) }
func FuzzMonnit(f *testing.F)         { fuzzParser(f, Monnit) }
func FuzzMonnitRule(f *testing.F)     { fuzzParser(f, MonnitRule) }
func FuzzDisruptive(f *testing.F)     { fuzzParser(f, Disruptive) }
func FuzzUbiBot(f *testing.F)         { fuzzParser(f, UbiBot) }
func FuzzMilesight(f *testing.F)      { fuzzParser(f, MilesightDP) }

// FuzzAwaitsDownlink checks that only a post with an ack requests a downlink.
func FuzzAwaitsDownlink(f *testing.F) {
	f.Add("device=1A&seqNumber=2&ack=true", []byte(""))
	f.Add("", []byte(`{"device":"1A","seqNumber":2,"ack":"true"}`))
	f.Add("", []byte("device=1A&ack=1"))
	f.Add("ack=true", []byte("{"))
	f.Fuzz(func(t *testing.T, query string, body []byte) {
		q, _ := url.ParseQuery(query)
		awaits := AwaitsDownlink(Post{Query: q, Body: body})
		var object map[string]any
		switch {
		case len(body) == 0 && awaits && !q.Has("ack"):
			t.Fatalf("the query %q has no ack, but requests a downlink", query)
		case json.Unmarshal(body, &object) == nil && awaits:
			if _, hasAck := object["ack"]; !hasAck {
				t.Fatalf("the body %q has no ack, but requests a downlink", body)
			}
		}
	})
}
