package netserver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// repeated joins n numbered items.
func repeated(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ",")
}

func TestTheNumberOfFramesIsLimited(t *testing.T) {
	const count = maxFrames + 5
	for name, body := range map[string]string{
		"Netmore":   `[` + repeated(count, `{"devEui":"a84041d2c5182f01","messageType":"payload","payload":"01","fCntUp":%d}`) + `]`,
		"Monnit":    `{"sensorMessages":[` + repeated(count, `{"sensorID":"%d","dataType":"A","dataValue":"1"}`) + `]}`,
		"Milesight": `[` + repeated(count, `{"eventType":"DEVICE_DATA","data":{"deviceProfile":{"sn":"%d"},"type":"PROPERTY","payload":{}}}`) + `]`,
		"KPN":       `[` + repeated(count, `{"bn":"urn:dev:DEVEUI:A84041D2C518%04X:","n":"payload","vs":"01"}`) + `]`,
	} {
		t.Run(name, func(t *testing.T) {
			p := Post{Body: []byte(body)}
			if s, err := Inspect(p); !errors.Is(err, ErrTooMany) {
				t.Errorf("Inspect: %q, %v, want %v", s, err, ErrTooMany)
			}
			frames, err := Parse(p)
			if len(frames) != maxFrames || err == nil {
				t.Errorf("got %d frames and error %v, want %d and an error", len(frames), err, maxFrames)
			}
		})
	}
	for name, item := range map[string]string{"generic": `{"t":%d}`, "SenML": `{"n":"d/t","v":%d}`} {
		for n, want := range map[int]error{maxFrames: nil, maxFrames + 1: ErrTooMany} {
			if _, err := Inspect(Post{Body: []byte(`[` + repeated(n, item) + `]`)}); !errors.Is(err, want) {
				t.Errorf("%s: %d items: %v, want %v", name, n, err, want)
			}
		}
	}
}

func TestTheNumberOfSamplesIsLimited(t *testing.T) {
	const count = maxSamples + 5
	for name, body := range map[string]string{
		"UbiBot":                  `{"channel_id":"1","feeds":[` + repeated(count, `{"created_at":"2026-02-14T06:30:12Z","field1":%d}`) + `]}`,
		"Disruptive Technologies": `{"event":{"eventType":"co2","targetName":"projects/p/devices/d","data":{"co2":{"samples":[` + repeated(count, `{"ppm":%d}`) + `]}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			frames, err := Parse(Post{Body: []byte(body)})
			if err != nil || len(frames) != 1 {
				t.Fatalf("%d frames, %v", len(frames), err)
			}
			if f := frames[0]; len(f.Samples) != maxSamples || f.Excess == "" {
				t.Errorf("got %d samples and excess %q, want %d and an excess", len(f.Samples), f.Excess, maxSamples)
			}
		})
	}
}

func TestInvalidXMLIsRefused(t *testing.T) {
	for name, body := range map[string]string{
		"two roots":                      `<DevEUI_uplink><DevEUI>A84041D2C5182F01</DevEUI></DevEUI_uplink><b/>`,
		"an end tag without a start tag": `<DevEUI_uplink></b></DevEUI_uplink>`,
		"a start tag without an end tag": `<DevEUI_uplink><DevEUI>A84041D2C5182F01</DevEUI>`,
		"a comment only":                 `<!-- DevEUI_ -->`,
		"another encoding":               `<?xml version="1.0" encoding="UTF-16"?><DevEUI_uplink><DevEUI>A84041D2C5182F01</DevEUI></DevEUI_uplink>`,
		"a reference to a surrogate":     `<DevEUI_uplink><DevEUI>A84041D2C5182F01</DevEUI><DriverCfg>&#xD83D;&#xDE06;</DriverCfg></DevEUI_uplink>`,
		"a hundred levels":               strings.Repeat("<DevEUI_a>", 100) + strings.Repeat("</DevEUI_a>", 100),
		"a document type with entities":  `<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><DevEUI_uplink><DevEUI>&b;</DevEUI></DevEUI_uplink>`,
	} {
		t.Run(name, func(t *testing.T) {
			p := Post{Body: []byte(body), ContentType: "application/xml"}
			if s := Detect(p); s != ThingPark {
				t.Fatalf("Detect = %q, want %q", s, ThingPark)
			}
			frames, err := Parse(p)
			if len(frames) > 0 || err == nil || isSyntax(err) {
				t.Errorf("got %d frames, %v, want an error about the XML", len(frames), err)
			}
		})
	}
}
