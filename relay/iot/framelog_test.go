package iot_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// rawFrames returns the raw frames of the device, newest first.
func (g *gateway) rawFrames() []iot.RawFrame {
	g.t.Helper()
	frames, err := g.Frames(g.t.Context(), 1, g.device(1).ID)
	relaytest.NoError(g.t, err)
	return frames
}

func (g *gateway) setFrameLogging(setting string) {
	g.t.Helper()
	_, err := g.ChangeDevice(g.t.Context(), 1, g.device(1).ID, iot.DeviceChange{FrameLogging: &setting})
	relaytest.NoError(g.t, err)
}

func TestRawFramesAreKeptWhileLoggingIsOn(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	g.setFrameLogging("enabled")
	g.mustStore(g.nextFrame(2, values("temperature", 2.0)))
	g.ingest(g.nextFrame(3, values("colour", "red")))
	g.setFrameLogging("disabled")
	g.mustStore(g.nextFrame(4, values("temperature", 4.0)))

	got := g.rawFrames()
	if len(got) != 2 {
		t.Fatalf("%d frames were logged, want 2", len(got))
	}
	relaytest.Equal(t, "the logged frames", []string{got[0].ID, got[1].ID}, []string{"n1-u3", "n1-u2"})
	relaytest.Equal(t, "the refusals of the logged frames", []string{got[0].Refused, got[1].Refused}, []string{"no sensor is mapped to any key of the frame: colour", ""})
	relaytest.Equal(t, "the object of the second frame", string(got[1].Object), `{"temperature":2}`)
	if _, err := g.Frames(t.Context(), 2, g.device(1).ID); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("frames for another account: %v, want not found", err)
	}
}

func TestARawFrameHasTheDataOfItsFrame(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	g.setFrameLogging("enabled")
	sampledAt := g.now.Add(-time.Hour)
	longText := strings.Repeat("x", 5000)
	for i, tc := range []struct {
		name  string
		frame decoders.Frame
		want  iot.RawFrame
	}{
		{
			"an uplink with radio data",
			decoders.Frame{
				Kind: decoders.Uplink, Sender: "chirpstack-v4", Payload: []byte{0, 255}, HasFCnt: true, FCnt: 7, HasFPort: true, FPort: 85, SampleTime: sampledAt,
				Gateways: []decoders.Gateway{{RSSI: new(-120.0), SNR: new(-9.0)}, {RSSI: new(-97.0), SNR: new(8.5)}}, Object: values("temperature", 2.0),
			},
			iot.RawFrame{Kind: "uplink", Sender: "chirpstack-v4", Payload: "00ff", FCnt: new(int64(7)), FPort: new(int64(85)), Time: sampledAt, RSSI: new(-97.0), SNR: new(8.5), Gateways: 2, Object: []byte(`{"temperature":2}`)},
		},
		{"a join", decoders.Frame{Kind: decoders.Join}, iot.RawFrame{Kind: "join", Note: "frames of the kind join have no readings"}},
		{"ciphertext", decoders.Frame{Kind: decoders.Uplink, Encrypted: true, Payload: []byte{1}}, iot.RawFrame{Kind: "uplink", Payload: "01", Encrypted: true, Refused: "the payload is encrypted"}},
		{
			"samples with their times",
			decoders.Frame{Kind: decoders.Uplink, Samples: []decoders.Reading{{Key: "temperature", Value: 0, Time: sampledAt}, {Key: "humidity", Text: "", IsText: true}}},
			iot.RawFrame{Kind: "uplink", Samples: []byte(`[{"key":"temperature","value":0,"time":"` + sampledAt.Format(time.RFC3339) + `"},{"key":"humidity","text":""}]`), Note: `humidity: the string "" is not a number and is stored as a string`},
		},
		{"a payload over 1 KiB", decoders.Frame{Kind: decoders.Ack, Payload: make([]byte, 1025)}, iot.RawFrame{Kind: "ack", Truncated: true, Note: "frames of the kind ack have no readings"}},
		{"values over 4 KiB", decoders.Frame{Kind: decoders.Ack, Object: values("note", longText)}, iot.RawFrame{Kind: "ack", Truncated: true, Note: "frames of the kind ack have no readings"}},
		{"values that JSON cannot represent", decoders.Frame{Kind: decoders.Ack, Object: values("v", math.Inf(1))}, iot.RawFrame{Kind: "ack", Truncated: true, Note: "frames of the kind ack have no readings"}},
	} {
		a := g.nextFrame(10+i, nil)
		tc.frame.Identifier = eui
		a.Frame = tc.frame
		g.ingest(a)
		tc.want.ID, tc.want.DeviceID, tc.want.ReceivedAt = a.RecordID, g.device(1).ID, a.ReceivedAt
		if tc.want.Time.IsZero() {
			tc.want.Time = a.ReceivedAt
		}
		if got := g.rawFrames()[0]; formatFrame(got) != formatFrame(tc.want) {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, formatFrame(got), formatFrame(tc.want))
		}
	}
}

// formatFrame formats a frame with the values of its pointers.
func formatFrame(f iot.RawFrame) string {
	formatted := fmt.Sprint(f.ID, f.DeviceID, f.ReceivedAt, f.Time, f.Sender, f.Kind, f.Payload, f.Encrypted, f.Truncated, f.Gateways, f.Refused, f.Note, string(f.Object), string(f.Samples))
	if f.FCnt != nil {
		formatted += fmt.Sprint(" fCnt ", *f.FCnt)
	}
	if f.FPort != nil {
		formatted += fmt.Sprint(" fPort ", *f.FPort)
	}
	return formatted + " radio " + formatFloat(f.RSSI) + formatFloat(f.SNR)
}

func TestEachRawFrameIsLoggedOnceUntilItsRetentionEnds(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.nextFrame(1, values("temperature", 1.0)))
	g.setFrameLogging("enabled")
	repeated := g.nextFrame(2, values("temperature", 2.0))
	g.mustStore(repeated)
	duplicate := g.nextFrame(3, values("temperature", 2.0))
	duplicate.Frame.DedupID = repeated.Frame.DedupID
	g.mustStore(duplicate)
	g.mustStore(repeated) // a replay of the record
	got := g.rawFrames()
	if len(got) != 1 {
		t.Fatalf("%d frames were logged, want 1", len(got))
	}
	relaytest.Equal(t, "the logged frame", got[0].ID, repeated.RecordID)
	g.now = g.now.Add(iot.FrameRetention)
	relaytest.Equal(t, "the number of logged frames after the retention", len(g.rawFrames()), 0)
}
