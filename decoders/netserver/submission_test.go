package netserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// outline parses a submission. It describes each frame by its payload or values, its port and
// its time.
func outline(t *testing.T, body string) (frames, faults []string) {
	t.Helper()
	parsed, problems := ParseSubmission("shed", []byte(body))
	for _, f := range parsed {
		relaytest.Equal(t, "the device, sender and dedup id", [3]string{f.Identifier, f.Sender, f.DedupID}, [3]string{"shed", "readings", ""})
		text := fmt.Sprintf("%x", f.Payload)
		if f.Object != nil {
			text = fmt.Sprint(f.Object)
		}
		if f.HasFPort {
			text += fmt.Sprint(" port ", f.FPort)
		}
		if !f.SampleTime.IsZero() {
			text += " at " + f.SampleTime.Format(time.DateTime)
		}
		frames = append(frames, text)
	}
	for _, p := range problems {
		faults = append(faults, p.Field+": "+p.Problem)
	}
	slices.Sort(faults)
	return frames, faults
}

func TestParseSubmission(t *testing.T) {
	const octetRange = "must be an integer between 0 and 255."
	for _, c := range []struct {
		name, body     string
		frames, faults []string
	}{
		{"bytes", `{"reading":[1,103,0,255]}`, []string{"016700ff"}, nil},
		{"an object", `{"reading":{"hex":"0167","fPort":2,"time":"2026-03-01 12:00:00"}}`, []string{"0167 port 2 at 2026-03-01 12:00:00"}, nil},
		{"an array with one object", `{"reading":[{"base64":"AWc=","time":1772366400}]}`, []string{"0167 at 2026-03-01 12:00:00"}, nil},
		{"values", `{"reading":{"values":{"a":1.5,"b":"2"},"hex":null}}`, []string{"map[a:1.5 b:2]"}, nil},
		{"a list in every form", `{"readings":[[1],{"hex":"02"},[{"hex":"03"}]]}`, []string{"01", "02", "03"}, nil},
		{"a list and a frame", `{"readings":[[2]],"reading":[1]}`, []string{"02", "01"}, nil},
		{"a list and an empty frame", `{"reading":[],"readings":[[2]]}`, []string{"02"}, nil},
		{"a list and null", `{"reading":null,"readings":[[2]]}`, []string{"02"}, nil},
		{"unknown members", `{"reading":{"hex":"01","x":[{}]},"y":{"z":[1]}}`, []string{"01"}, nil},
		{"empty bytes in an object", `{"reading":{"hex":"","fPort":0}}`, []string{" port 0"}, nil},
		{"a number in a string stays a string", `{"reading":{"values":{"t":"1e400"}}}`, []string{"map[t:1e400]"}, nil},

		{"an empty object", `{}`, nil, []string{"reading: The reading field is required."}},
		{"empty arrays", `{"reading":[],"readings":[]}`, nil, []string{"reading: The reading field is required."}},
		{"a list", `[1]`, nil, []string{"reading: The reading field is required."}},
		{"a string", `{"reading":"0167"}`, nil, []string{"reading: The reading must be an array."}},
		{"readings that are not a list", `{"readings":{"hex":"01"}}`, nil, []string{"readings: The readings must be an array."}},
		{"bytes beyond 255", `{"reading":[1,256]}`, nil, []string{"reading.1: The reading.1 " + octetRange}},
		{"bytes below 0", `{"reading":[-1]}`, nil, []string{"reading.0: The reading.0 " + octetRange}},
		{"bytes with fractions", `{"reading":[1.5]}`, nil, []string{"reading.0: The reading.0 " + octetRange}},
		{"bytes in strings", `{"reading":["1"]}`, nil, []string{"reading.0: The reading.0 " + octetRange}},
		{"an array in the bytes", `{"reading":[1,[2]]}`, nil, []string{"reading.1: The reading.1 " + octetRange}},
		{"two objects", `{"reading":[{"hex":"01"},{"hex":"02"}]}`, []string{"01"}, []string{"reading: The reading must hold one frame or the bytes of one."}},
		{"an object without a body", `{"reading":{"fPort":1}}`, nil, []string{"reading: The reading must have one of hex, base64 and values."}},
		{"an object with two bodies", `{"reading":{"hex":"01","values":{}}}`, nil, []string{"reading: The reading must have one of hex, base64 and values."}},
		{"invalid hexadecimal", `{"readings":[[1],{"hex":"0"},{"hex":7}]}`, []string{"01"},
			[]string{"readings.1.hex: The readings.1.hex must be bytes in hexadecimal.", "readings.2.hex: The readings.2.hex must be bytes in hexadecimal."}},
		{"invalid base64", `{"reading":{"base64":"?"}}`, nil, []string{"reading.base64: The reading.base64 must be bytes in base64."}},
		{"values that are not an object", `{"reading":{"values":[1]}}`, nil, []string{"reading.values: The reading.values must be an object."}},
		{"a port beyond 255", `{"reading":{"hex":"01","fPort":256}}`, nil, []string{"reading.fPort: The reading.fPort " + octetRange}},
		{"a port in a string", `{"reading":{"hex":"01","fPort":"1"}}`, nil, []string{"reading.fPort: The reading.fPort " + octetRange}},
		{"an invalid time", `{"reading":{"hex":"01","time":"noon"}}`, nil, []string{"reading.time: The reading.time is not a time."}},
		{"a number beyond float64", `{"reading":{"values":{"a":{"b":[0,-1e400]}}}}`, nil, []string{"reading.values.a.b.1: The reading.values.a.b.1 must be a number that 64 bits can hold."}},
		{"null in a list", `{"readings":[[1],null]}`, []string{"01"}, []string{"readings.1: The readings.1 field is required."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			frames, faults := outline(t, c.body)
			relaytest.Equal(t, "the frames", frames, c.frames)
			relaytest.Equal(t, "the faults", faults, c.faults)
		})
	}
}

func TestTheNumberOfSubmittedFramesIsLimited(t *testing.T) {
	for n, want := range map[int]int{100: 0, 101: 1, 5000: 1} {
		frames, faults := outline(t, `{"readings":[`+strings.TrimSuffix(strings.Repeat("[1],", n), ",")+`]}`)
		if len(frames) != 100 || len(faults) != want {
			t.Errorf("%d submitted frames: got %d frames and faults %q", n, len(frames), faults)
		}
		if want > 0 && faults[0] != "readings: The readings may not have more than 100 items." {
			t.Errorf("%d submitted frames: faults %q", n, faults)
		}
	}
}

// FuzzParseSubmission checks that a submission has frames or faults, and that every frame has a
// payload or values, unless the body has an empty string.
func FuzzParseSubmission(f *testing.F) {
	for _, s := range []string{`{"reading":[1,2]}`, `{"readings":[{"hex":"01","time":"x"},[{"values":{"a":1e400}}]]}`, `{"reading":{"base64":"AWc","fPort":1}}`, `{`, `[]`, `{"readings":[[[]]]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		frames, faults := ParseSubmission("shed", body)
		if len(frames) == 0 && len(faults) == 0 {
			t.Fatal("the submission has neither frames nor faults")
		}
		if len(frames) > len(body) {
			t.Fatalf("a body of %d bytes has %d frames", len(body), len(frames))
		}
		for _, frame := range frames {
			if frame.Identifier != "shed" || frame.Object == nil && frame.Payload == nil && !strings.Contains(string(body), `""`) {
				t.Fatalf("the frame of the device %q has no payload and no values", frame.Identifier)
			}
		}
	})
}
