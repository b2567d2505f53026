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

// reads passes body to a reader of one value. It returns the value, the warnings, the note
// about the time and the error.
func reads(t *testing.T, body string, read func(d document, f *decoders.Frame) any) (got any, notes string) {
	t.Helper()
	var f decoders.Frame
	_, err := eachFrame("s", new(Post), []byte(body), func(d document, into *decoders.Frame) {
		got = read(d, into)
		_ = d.notes.write(&f)
	})
	notes = strings.Join(f.Warnings, "; ") + f.TimeNote
	if err != nil {
		notes += "refused: " + err.Error()
	}
	if p, ok := got.(*float64); ok {
		if got = any(nil); p != nil {
			got = *p
		}
	}
	return got, notes
}

func TestFieldsAreReadByTheirPaths(t *testing.T) {
	const text, number, whole = "is not a string", "is not a number", "is not a whole number from 1 to 9"
	at := func(path string) func(d document, f *decoders.Frame) any {
		return func(d document, _ *decoders.Frame) any { return d.Text(path) }
	}
	integer := func(d document, _ *decoders.Frame) any { n, ok := d.Int("a.n", 1, 9); return fmt.Sprint(n, ok) }
	float := func(d document, _ *decoders.Frame) any { return d.Number("a.n") }
	truth := func(d document, _ *decoders.Frame) any { return fmt.Sprint(d.Bool("b"), d.Flag("b")) }
	base64 := func(d document, _ *decoders.Frame) any { return fmt.Sprintf("%x", d.Base64("p")) }
	hex := func(d document, _ *decoders.Frame) any { return fmt.Sprintf("%x", d.Hex("p")) }
	clock := func(d document, _ *decoders.Frame) any {
		if at := d.Time("t"); !at.IsZero() {
			return at.Format(time.RFC3339)
		}
		return ""
	}
	object := func(d document, _ *decoders.Frame) any { return fmt.Sprint(d.Object("o")) }
	shown := func(v *float64) any {
		if v == nil {
			return "none"
		}
		return *v
	}
	battery := func(d document, _ *decoders.Frame) any {
		return fmt.Sprintln(shown(d.LoRaBattery("b")), shown(d.Percent("b")))
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
		{"a text at the top", `{"a":"x"}`, at("a"), "x", ""},
		{"a text within objects", `{"a":{"b":{"c":"x"}}}`, at("a.b.c"), "x", ""},
		{"the digits of a number are a text", `{"a":1.50}`, at("a"), "1.50", ""},
		{"a field that is missing", `{"a":{}}`, at("a.b"), "", ""},
		{"a field within what is not an object", `{"a":[1]}`, at("a.b"), "", ""},
		{"null is nothing", `{"a":null}`, at("a"), "", ""},
		{"an object is not a text", `{"a":{"b":{}}}`, at("a.b"), "", "a.b: " + text},
		{"a name that comes twice: the last", `{"a":1,"a":2}`, at("a"), "2", ""},
		{"an object that comes twice: both", `{"a":{"b":1},"a":{"c":2}}`, at("a.b"), "1", ""},
		{"alternatives: the last", `{"a":{"y":1,"x":2}}`, at("a.x|y"), "2", ""},
		{"alternatives: the note names the one that is there", `{"a":{"y":[]}}`, at("a.x|y"), "", "a.y: " + text},
		{"a name with an escape", `{"\u0061":"x"}`, at("a"), "x", ""},
		{"a body that is not an object", `[1]`, at("a"), "", ""},
		{"a name that begins alike", `{"ab":1}`, at("a"), "", ""},

		{"a whole number", `{"a":{"n":9}}`, integer, "9 true", ""},
		{"a whole number beyond its bounds", `{"a":{"n":10}}`, integer, "0 false", "a.n: " + whole},
		{"a whole number below its bounds", `{"a":{"n":0}}`, integer, "0 false", "a.n: " + whole},
		{"a fraction is no whole number", `{"a":{"n":1.5}}`, integer, "0 false", "a.n: " + whole},
		{"no whole number", `{}`, integer, "0 false", ""},
		{"a number", `{"a":{"n":"-1.5"}}`, float, -1.5, ""},
		{"no number", `{"a":{"n":"warm"}}`, float, nil, "a.n: " + number},
		{"a number that is missing", `{"a":{}}`, float, nil, ""},

		{"true", `{"b":true}`, truth, "true true", ""},
		{"1 is a flag and no boolean", `{"b":1}`, truth, "false true", "b: is not true or false"},
		{"base64", `{"p":"AQI="}`, base64, "0102", ""},
		{"no base64", `{"p":"?"}`, base64, "", "refused: s: p: is not base64"},
		{"base64 that is missing", `{}`, base64, "", ""},
		{"hex", `{"p":"0A"}`, hex, "0a", ""},
		{"a number is no hex", `{"p":10}`, hex, "", "refused: s: p: is not hex"},
		{"hex that is missing", `{}`, hex, "", ""},
		{"a time", `{"t":"2026-02-14T06:30:12Z"}`, clock, "2026-02-14T06:30:12Z", ""},
		{"no time", `{"t":"noon"}`, clock, "", `t: is not a time: "noon"`},
		{"an object", `{"o":{"a":{"b":1}}}`, object, "map[a:map[b:1]]", ""},
		{"no object", `{"o":1}`, object, "map[]", "o: is not an object"},
		{"a devEUI", `{"a":{"eui":"A8-40-41-D2-C5-18-2F-01"}}`, eui, "a84041d2c5182f01", ""},
		{"no devEUI", `{"a":{"eui":"x"}}`, eui, "", "refused: s: a.eui: is not a devEUI of 16 hex digits"},
		{"a devEUI that is missing", `{"a":{}}`, eui, "", "refused: s: a.eui: names no device"},
		{"an identifier that is no devEUI", `{"id":"shed"}`, func(d document, f *decoders.Frame) any {
			d.Device(f, "id", d.Text("id"))
			return fmt.Sprintln(f.Identifier, f.IsDevEUI)
		}, "shed false\n", ""},
		{"an identifier that is missing", `{}`, func(d document, f *decoders.Frame) any { d.Device(f, "id", ""); return nil }, nil, "refused: s: id: names no device"},
		{"a battery that is full on LoRaWAN's scale and beyond 100 per cent", `{"b":254}`, battery, "100 none\n", ""},
		{"a battery in per cent", `{"b":"50"}`, battery, "19.7 50\n", ""},
		{"a port and a counter", `{"p":255,"n":4294967295}`, ports, "255 true 4294967295 true", ""},
		{"a port and a counter beyond their bounds", `{"p":256,"n":4294967296}`, ports, "0 false 0 false", "p: is not a whole number from 0 to 255; n: is not a whole number from 0 to 4294967295"},
		{"a position", `{"at":{"lat":1.5,"lng":2.5,"altitude":3}}`, position, "1.5 2.5", ""},
		{"a position that is unknown", `{"at":{"lat":0,"lng":0}}`, position, "none", ""},
		{"a position that is not an object", `{"at":"here"}`, position, "none", ""},
		{"JSON in a text", `{"a":"{\"b\":[\"x\"]}"}`, func(d document, _ *decoders.Frame) any {
			return fmt.Sprint(d.Unquote("a").Kind("b") == jsonbody.Array)
		}, "true", ""},
		{"no JSON in a text", `{"a":"{"}`, func(d document, _ *decoders.Frame) any { return d.Unquote("a").Text("b") }, "", ""},
		{"a required text that is missing", `{"a":""}`, func(d document, _ *decoders.Frame) any { return d.Required("a") }, "", "refused: s: a: is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, notes := reads(t, c.body, c.read)
			relaytest.Equal(t, "the value", got, c.want)
			relaytest.Equal(t, "the notes", notes, c.notes)
		})
	}
}

func TestNotesAreInTheOrderOfTheBody(t *testing.T) {
	_, notes := reads(t, `{"a":{"x":[],"p":"?"},"l":[{"x":1},{"x":{}}],"q":"?","t":"noon","u":"dusk"}`, func(d document, f *decoders.Frame) any {
		d.Refuse("missing", "is missing")
		d.Time("u")
		d.Time("t")
		d.Base64("q")
		d.Each("l", func(item document) { item.Text("x") })
		d.In("a").Base64("p")
		d.As("better").In("a").Text("x")
		return nil
	})
	const want = `better.x: is not a string; l.x: is not a stringt: is not a time: "noon"refused: s: a.p: is not base64`
	relaytest.Equal(t, "the notes", notes, want)
}

func TestListsAndObjectsAreVisitedInTheirOrder(t *testing.T) {
	got, notes := reads(t, `{"b":1,"a":{"d":[{"x":1},7,{"x":{"y":2}}]},"c":null}`, func(d document, f *decoders.Frame) any {
		var seen []string
		seen = slices.Collect(d.Keys())
		d.All(func(key string, v jsonbody.Value, in document) {
			seen = append(seen, fmt.Sprintf("%s %d %v", key, v.Kind, in.Has("d")))
		})
		d.Each("a.d", func(item document) {
			seen = append(seen, item.Text("x")+"-"+item.Text("x.y"), d.Text("b"))
		})
		return seen
	})
	want := []string{"b", "a", "c", "b 3 false", "a 6 true", "c 1 false", "1-", "1", "-", "1", "-2", "1"}
	relaytest.Equal(t, "the visits", got, any(want))
	relaytest.Equal(t, "the notes", notes, "a.d.x: is not a string")
}

func TestAReceptionMayReplaceTheList(t *testing.T) {
	const many = maxGateways + 5
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"a list":           {`{"g":[{"id":"1"},{"id":"2"}]}`, 2},
		"one":              {`{"g":{"id":"1"}}`, 1},
		"neither":          {`{"g":"1"}`, 0},
		"more than needed": {`{"g":[` + repeated(many, `{"id":"%d"}`) + `]}`, maxGateways},
	} {
		got, _ := reads(t, c.body, func(d document, _ *decoders.Frame) any {
			return d.Gateways("g", func(g document) decoders.Gateway { return decoders.Gateway{ID: g.Text("id")} })
		})
		if list := got.([]decoders.Gateway); len(list) != c.want || c.want > 0 && list[0].ID == "" {
			t.Errorf("%s: got %d, want %d", name, len(list), c.want)
		}
	}
}

func TestOtherItemsOfARefusedItemAreRead(t *testing.T) {
	item := func(d document, f *decoders.Frame) {
		if f.Text = d.Required("a"); f.Text != "passed over" {
			f.Kind = decoders.Log
		}
	}
	several := func(body string) ([]decoders.Frame, error) {
		d, err := readDocument([]byte(body))
		relaytest.NoError(t, err)
		d.notes = new(notes)
		b := frames{sender: "s"}
		d.Each("l", func(d document) { b.item(d, item) })
		return b.list, b.err
	}
	const list = `[{"a":"1"},{"a":"passed over"},{"b":{}},7,{"a":"2"}]`
	if frames, err := eachFrame("s", new(Post), []byte(list), item); len(frames) != 2 || fmt.Sprint(err) != "s: 2.a: is missing" {
		t.Errorf("a list: %d frames, %v", len(frames), err)
	}
	if frames, err := several(`{"l":` + list + `}`); len(frames) != 2 || fmt.Sprint(err) != "s: 2.l.a: is missing" {
		t.Errorf("a list in the body: %d frames, %v", len(frames), err)
	}
	if frames, err := eachFrame("s", new(Post), []byte(`{"a":"1"}`), item); len(frames) != 1 || err != nil {
		t.Errorf("one in the list's place: %d frames, %v", len(frames), err)
	}
	if frames, err := eachFrame("s", new(Post), []byte(`[{"a":"1"},{]`), item); len(frames) > 0 || !isSyntax(err) {
		t.Errorf("a list cut off: %d frames, %v", len(frames), err)
	}
}

// FuzzDocument compares document with encoding/json: both have the same value at a path and
// refuse the same bodies.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"a":{"b":{"c":"x"},"l":[{"x":1},2]},"d":1}`), "a.b.c")
	f.Add([]byte(`{"a":{"b":1},"a":2}`), "a.b|c")
	f.Add([]byte(`{"":{"":1}}`), ".")
	f.Add([]byte(`{"a":[`), "a")
	f.Fuzz(func(t *testing.T, body []byte, path string) {
		var found any
		_, err := eachFrame("s", new(Post), body, func(d document, into *decoders.Frame) {
			v := d.Value(path)
			if v.Kind != jsonbody.Missing {
				found = v
			}
			for _, read := range []func(){
				func() { d.Text(path) }, func() { d.Int(path, 0, 9) }, func() { d.Time(path) }, func() { d.Object(path) },
				func() { d.Hex(path) }, func() { d.Base64(path) }, func() { d.DevEUI(into, path) }, func() { d.In(path).Text(path) },
				func() { d.Each(path, func(item document) { item.Number(path) }) },
				func() { d.Gateways(path, func(document) (g decoders.Gateway) { return }) },
			} {
				read()
			}
		})
		var want map[string]any
		r := jsonbody.New(body)
		r.Skip()
		if checked := r.Close(); (checked != nil) != isSyntax(err) {
			t.Fatalf("read with %v what is checked with %v", err, checked)
		} else if checked != nil || json.Unmarshal(body, &want) != nil || strings.Contains(path, "|") {
			return
		}
		if has(want, path) && found == nil {
			t.Fatalf("%q of %q was not found", path, body)
		}
	})
}

func has(v any, path string) bool {
	name, rest, nested := strings.Cut(path, ".")
	m, _ := v.(map[string]any)
	inner, ok := m[name]
	return ok && (!nested || has(inner, rest))
}
