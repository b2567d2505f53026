package netserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
	"github.com/penstock/penstock/relay/relaytest"
)

// readValue reads one value from body. It returns the value and, joined, the warnings, the
// note about the time and the error.
func readValue(t *testing.T, body string, read func(d document, f *decoders.Frame) any) (got any, notes string) {
	t.Helper()
	var noteFrame decoders.Frame
	_, err := eachFrame("s", new(Post), []byte(body), func(d document, f *decoders.Frame) {
		got = read(d, f)
		_ = d.notes.write(&noteFrame)
	})
	texts := noteFrame.Warnings
	if noteFrame.TimeNote != "" {
		texts = append(texts, noteFrame.TimeNote)
	}
	if err != nil {
		texts = append(texts, "refused: "+err.Error())
	}
	notes = strings.Join(texts, "; ")
	if p, ok := got.(*float64); ok {
		if got = any(nil); p != nil {
			got = *p
		}
	}
	return got, notes
}

func TestFieldsAreReadByTheirPaths(t *testing.T) {
	const textNote, numberNote, integerNote = "is not a string", "is not a number", "is not a whole number from 1 to 9"
	textAt := func(path string) func(d document, f *decoders.Frame) any {
		return func(d document, _ *decoders.Frame) any { return d.Text(path) }
	}
	integer := func(d document, _ *decoders.Frame) any { n, ok := d.Int("a.n", 1, 9); return fmt.Sprint(n, ok) }
	float := func(d document, _ *decoders.Frame) any { return d.Number("a.n") }
	boolean := func(d document, _ *decoders.Frame) any { return fmt.Sprint(d.Bool("b"), d.Flag("b")) }
	base64 := func(d document, _ *decoders.Frame) any { return fmt.Sprintf("%x", d.Base64("p")) }
	hex := func(d document, _ *decoders.Frame) any { return fmt.Sprintf("%x", d.Hex("p")) }
	timestamp := func(d document, _ *decoders.Frame) any {
		if v := d.Time("t"); !v.IsZero() {
			return v.Format(time.RFC3339)
		}
		return ""
	}
	object := func(d document, _ *decoders.Frame) any { return fmt.Sprint(d.Object("o")) }
	formatNumber := func(v *float64) any {
		if v == nil {
			return "none"
		}
		return *v
	}
	battery := func(d document, _ *decoders.Frame) any {
		return fmt.Sprintln(formatNumber(d.LoRaBattery("b")), formatNumber(d.Percent("b")))
	}
	ports := func(d document, _ *decoders.Frame) any {
		port, hasPort := d.FPort("p")
		n, hasN := d.FCnt("n")
		return fmt.Sprint(port, hasPort, n, hasN)
	}
	position := func(d document, _ *decoders.Frame) any {
		p := d.Position("at")
		if p == nil {
			return "none"
		}
		return fmt.Sprint(p.Latitude, p.Longitude)
	}
	eui := func(d document, f *decoders.Frame) any { d.DevEUI(f, "a.eui"); return f.Identifier }
	for _, c := range []struct {
		name, body string
		read       func(d document, f *decoders.Frame) any
		want       any
		notes      string
	}{
		{"a string at the top", `{"a":"x"}`, textAt("a"), "x", ""},
		{"a string within objects", `{"a":{"b":{"c":"x"}}}`, textAt("a.b.c"), "x", ""},
		{"the digits of a number as a string", `{"a":1.50}`, textAt("a"), "1.50", ""},
		{"a missing string", `{"a":{}}`, textAt("a.b"), "", ""},
		{"a field within a list is missing", `{"a":[1]}`, textAt("a.b"), "", ""},
		{"null is a missing string", `{"a":null}`, textAt("a"), "", ""},
		{"an object is not a string", `{"a":{"b":{}}}`, textAt("a.b"), "", "a.b: " + textNote},
		{"of two fields with the same name, the last is read", `{"a":1,"a":2}`, textAt("a"), "2", ""},
		{"two objects with the same name are merged", `{"a":{"b":1},"a":{"c":2}}`, textAt("a.b"), "1", ""},
		{"of two alternatives, the later in the body is read", `{"a":{"y":1,"x":2}}`, textAt("a.x|y"), "2", ""},
		{"the note names the alternative that is present", `{"a":{"y":[]}}`, textAt("a.x|y"), "", "a.y: " + textNote},
		{"a name with an escape", `{"\u0061":"x"}`, textAt("a"), "x", ""},
		{"a body that is not an object", `[1]`, textAt("a"), "", ""},
		{"a longer name is another field", `{"ab":1}`, textAt("a"), "", ""},

		{"a whole number", `{"a":{"n":9}}`, integer, "9 true", ""},
		{"a whole number beyond its bounds", `{"a":{"n":10}}`, integer, "0 false", "a.n: " + integerNote},
		{"a whole number below its bounds", `{"a":{"n":0}}`, integer, "0 false", "a.n: " + integerNote},
		{"a fraction is not a whole number", `{"a":{"n":1.5}}`, integer, "0 false", "a.n: " + integerNote},
		{"a missing whole number", `{}`, integer, "0 false", ""},
		{"a number", `{"a":{"n":"-1.5"}}`, float, -1.5, ""},
		{"a string instead of a number", `{"a":{"n":"warm"}}`, float, nil, "a.n: " + numberNote},
		{"a missing number", `{"a":{}}`, float, nil, ""},

		{"true", `{"b":true}`, boolean, "true true", ""},
		{"1 is a flag but not a boolean", `{"b":1}`, boolean, "false true", "b: is not true or false"},
		{"base64", `{"p":"AQI="}`, base64, "0102", ""},
		{"invalid base64", `{"p":"?"}`, base64, "", "refused: s: p: is not base64"},
		{"missing base64", `{}`, base64, "", ""},
		{"hex", `{"p":"0A"}`, hex, "0a", ""},
		{"a number is not hex", `{"p":10}`, hex, "", "refused: s: p: is not hex"},
		{"missing hex", `{}`, hex, "", ""},
		{"a time", `{"t":"2026-02-14T06:30:12Z"}`, timestamp, "2026-02-14T06:30:12Z", ""},
		{"an invalid time", `{"t":"noon"}`, timestamp, "", `t: is not a time: "noon"`},
		{"an object", `{"o":{"a":{"b":1}}}`, object, "map[a:map[b:1]]", ""},
		{"a number instead of an object", `{"o":1}`, object, "map[]", "o: is not an object"},
		{"a devEUI", `{"a":{"eui":"A8-40-41-D2-C5-18-2F-01"}}`, eui, "a84041d2c5182f01", ""},
		{"an invalid devEUI", `{"a":{"eui":"x"}}`, eui, "", "refused: s: a.eui: is not a devEUI of 16 hex digits"},
		{"a missing devEUI", `{"a":{}}`, eui, "", "refused: s: a.eui: names no device"},
		{"an identifier that is not a devEUI", `{"id":"shed"}`, func(d document, f *decoders.Frame) any {
			d.Device(f, "id", d.Text("id"))
			return fmt.Sprintln(f.Identifier, f.IsDevEUI)
		}, "shed false\n", ""},
		{"a missing identifier", `{}`, func(d document, f *decoders.Frame) any { d.Device(f, "id", ""); return nil }, nil, "refused: s: id: names no device"},
		{"a level of 254 is full on LoRaWAN's scale and not a percentage", `{"b":254}`, battery, "100 none\n", ""},
		{"a level of 50 on LoRaWAN's scale and in per cent", `{"b":"50"}`, battery, "19.7 50\n", ""},
		{"a port and a counter", `{"p":255,"n":4294967295}`, ports, "255 true 4294967295 true", ""},
		{"a port and a counter beyond their bounds", `{"p":256,"n":4294967296}`, ports, "0 false 0 false", "p: is not a whole number from 0 to 255; n: is not a whole number from 0 to 4294967295"},
		{"a position", `{"at":{"lat":1.5,"lng":2.5,"altitude":3}}`, position, "1.5 2.5", ""},
		{"a position that is unknown", `{"at":{"lat":0,"lng":0}}`, position, "none", ""},
		{"a position that is not an object", `{"at":"here"}`, position, "none", ""},
		{"JSON in a text", `{"a":"{\"b\":[\"x\"]}"}`, func(d document, _ *decoders.Frame) any {
			return fmt.Sprint(d.Unquote("a").Kind("b") == jsonbody.Array)
		}, "true", ""},
		{"invalid JSON in a string", `{"a":"{"}`, func(d document, _ *decoders.Frame) any { return d.Unquote("a").Text("b") }, "", ""},
		{"a missing required string", `{"a":""}`, func(d document, _ *decoders.Frame) any { return d.Required("a") }, "", "refused: s: a: is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, notes := readValue(t, c.body, c.read)
			relaytest.Equal(t, "the value", got, c.want)
			relaytest.Equal(t, "the notes", notes, c.notes)
		})
	}
}

func TestNotesAreInTheOrderOfTheBody(t *testing.T) {
	_, notes := readValue(t, `{"a":{"x":[],"p":"?"},"l":[{"x":1},{"x":{}}],"q":"?","t":"noon","u":"dusk"}`, func(d document, f *decoders.Frame) any {
		d.Refuse("missing", "is missing")
		d.Time("u")
		d.Time("t")
		d.Base64("q")
		d.Each("l", func(item document) { item.Text("x") })
		d.In("a").Base64("p")
		d.As("better").In("a").Text("x")
		return nil
	})
	const want = `better.x: is not a string; l.x: is not a string; t: is not a time: "noon"; refused: s: a.p: is not base64`
	relaytest.Equal(t, "the notes", notes, want)
}

func TestListsAndObjectsAreVisitedInOrder(t *testing.T) {
	got, notes := readValue(t, `{"b":1,"a":{"d":[{"x":1},7,{"x":{"y":2}}]},"c":null}`, func(d document, f *decoders.Frame) any {
		var visits []string
		visits = slices.Collect(d.Keys())
		d.All(func(key string, v jsonbody.Value, field document) {
			visits = append(visits, fmt.Sprintf("%s %d %v", key, v.Kind, field.Has("d")))
		})
		d.Each("a.d", func(item document) {
			visits = append(visits, item.Text("x")+"-"+item.Text("x.y"), d.Text("b"))
		})
		return visits
	})
	want := []string{"b", "a", "c", "b 3 false", "a 6 true", "c 1 false", "1-", "1", "-", "1", "-2", "1"}
	relaytest.Equal(t, "the visits", got, any(want))
	relaytest.Equal(t, "the notes", notes, "a.d.x: is not a string")
}

func TestGatewaysAcceptsAnObjectInsteadOfAList(t *testing.T) {
	const count = maxGateways + 5
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"a list":    {`{"g":[{"id":"1"},{"id":"2"}]}`, 2},
		"an object": {`{"g":{"id":"1"}}`, 1},
		"a string":  {`{"g":"1"}`, 0},
		"too many":  {`{"g":[` + repeated(count, `{"id":"%d"}`) + `]}`, maxGateways},
	} {
		got, _ := readValue(t, c.body, func(d document, _ *decoders.Frame) any {
			return d.Gateways("g", func(g document) decoders.Gateway { return decoders.Gateway{ID: g.Text("id")} })
		})
		if list := got.([]decoders.Gateway); len(list) != c.want || c.want > 0 && list[0].ID == "" {
			t.Errorf("%s: got %d gateways, want %d", name, len(list), c.want)
		}
	}
}

func TestItemsAfterARefusedItemAreRead(t *testing.T) {
	item := func(d document, f *decoders.Frame) {
		if f.Text = d.Required("a"); f.Text != "discarded" {
			f.Kind = decoders.Log
		}
	}
	readList := func(body string) ([]decoders.Frame, error) {
		d, err := readDocument([]byte(body))
		relaytest.NoError(t, err)
		d.notes = new(notes)
		b := frameList{sender: "s"}
		d.Each("l", func(d document) { b.addItem(d, item) })
		return b.frames, b.err
	}
	const list = `[{"a":"1"},{"a":"discarded"},{"b":{}},7,{"a":"2"}]`
	if frames, err := eachFrame("s", new(Post), []byte(list), item); len(frames) != 2 || fmt.Sprint(err) != "s: 2.a: is missing" {
		t.Errorf("a list: %d frames, %v", len(frames), err)
	}
	if frames, err := readList(`{"l":` + list + `}`); len(frames) != 2 || fmt.Sprint(err) != "s: 2.l.a: is missing" {
		t.Errorf("a list in the body: %d frames, %v", len(frames), err)
	}
	if frames, err := eachFrame("s", new(Post), []byte(`{"a":"1"}`), item); len(frames) != 1 || err != nil {
		t.Errorf("an object instead of a list: %d frames, %v", len(frames), err)
	}
	if frames, err := eachFrame("s", new(Post), []byte(`[{"a":"1"},{]`), item); len(frames) > 0 || !isSyntax(err) {
		t.Errorf("a truncated list: %d frames, %v", len(frames), err)
	}
}

// FuzzDocument checks that any path can be read without a panic, that a body is refused with a syntax
// error exactly if it is not valid JSON, and that document has every member that encoding/json finds.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"a":{"b":{"c":"x"},"l":[{"x":1},2]},"d":1}`), "a.b.c")
	f.Add([]byte(`{"a":{"b":1},"a":2}`), "a.b|c")
	f.Add([]byte(`{"":{"":1}}`), ".")
	f.Add([]byte(`{"a":[`), "a")
	f.Fuzz(func(t *testing.T, body []byte, path string) {
		var found any
		_, err := eachFrame("s", new(Post), body, func(d document, frame *decoders.Frame) {
			v := d.Value(path)
			if v.Kind != jsonbody.Missing {
				found = v
			}
			for _, read := range []func(){
				func() { d.Text(path) }, func() { d.Int(path, 0, 9) }, func() { d.Time(path) }, func() { d.Object(path) },
				func() { d.Hex(path) }, func() { d.Base64(path) }, func() { d.DevEUI(frame, path) }, func() { d.In(path).Text(path) },
				func() { d.Each(path, func(item document) { item.Number(path) }) },
				func() { d.Gateways(path, func(document) (g decoders.Gateway) { return }) },
			} {
				read()
			}
		})
		var want map[string]any
		r := jsonbody.New(body)
		r.Skip()
		if syntaxErr := r.Close(); (syntaxErr != nil) != isSyntax(err) {
			t.Fatalf("eachFrame returns %v, jsonbody %v", err, syntaxErr)
		} else if syntaxErr != nil || json.Unmarshal(body, &want) != nil || strings.Contains(path, "|") {
			return
		}
		if hasMember(want, path) && found == nil {
			t.Fatalf("%q of %q was not found", path, body)
		}
	})
}

func hasMember(v any, path string) bool {
	name, tail, nested := strings.Cut(path, ".")
	m, _ := v.(map[string]any)
	inner, ok := m[name]
	return ok && (!nested || hasMember(inner, tail))
}
