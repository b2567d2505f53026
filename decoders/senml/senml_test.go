package senml

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/decoderstest"
	"github.com/penstock/penstock/relay/relaytest"
)

func now() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func TestParse(t *testing.T) {
	unix := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	n := func(name string, v float64, recordTime time.Time) Record {
		return Record{Name: name, Kind: Number, Value: v, Time: recordTime}
	}
	for _, c := range []struct {
		name, pack string
		want       []Record
		err        string
	}{
		{"a single record without a time", `[{"n":"urn:dev:ow:10e2073a01080063","u":"Cel","v":23.1}]`,
			[]Record{{Name: "urn:dev:ow:10e2073a01080063", Unit: "Cel", Kind: Number, Value: 23.1}}, ""},
		{"base fields apply to later records", `[{"bn":"d:","bt":1276020076,"bu":"A","bver":5,"n":"voltage","u":"V","v":120.1},{"n":"current","t":-5,"v":1.2}]`,
			[]Record{{Name: "d:voltage", Unit: "V", Kind: Number, Value: 120.1, Time: unix(1276020076)}, {Name: "d:current", Unit: "A", Kind: Number, Value: 1.2, Time: unix(1276020071)}}, ""},
		{"a record of base fields alone sets the base", `[{"bn":"d:","bt":1276020076},{"n":"a","v":1}]`, []Record{n("d:a", 1, unix(1276020076))}, ""},
		{"a base may change", `[{"bn":"a:","n":"x","v":1},{"bn":"b:","n":"x","v":2}]`, []Record{n("a:x", 1, time.Time{}), n("b:x", 2, time.Time{})}, ""},
		{"the base value is added", `[{"bn":"d:","bv":20,"n":"x","v":1.5},{"n":"y"}]`, []Record{n("d:x", 21.5, time.Time{}), n("d:y", 20, time.Time{})}, ""},
		{"the base sum is added", `[{"bs":100,"n":"x","s":5},{"n":"y","v":1}]`,
			[]Record{{Name: "x", Sum: new(105.0)}, {Name: "y", Kind: Number, Value: 1, Sum: new(100.0)}}, ""},
		{"a time below 2^28 is relative to now", `[{"n":"x","t":-60,"v":1},{"n":"x","t":2.5,"v":2}]`,
			[]Record{n("x", 1, now().Add(-time.Minute)), n("x", 2, now().Add(2500*time.Millisecond))}, ""},
		{"a fraction of a second is read to the microsecond", `[{"n":"x","t":1276020076.305,"v":1}]`, []Record{n("x", 1, time.Unix(1276020076, 305000000).UTC())}, ""},
		{"true, text and data", `[{"n":"a","vb":true},{"n":"b","vb":false},{"n":"c","vs":"on"},{"n":"d","vd":"aGkg"},{"n":"e","vd":"-_8"}]`,
			[]Record{{Name: "a", Kind: Bool, Value: 1}, {Name: "b", Kind: Bool}, {Name: "c", Kind: Text, Text: "on"}, {Name: "d", Kind: Data, Data: []byte("hi ")}, {Name: "e", Kind: Data, Data: []byte{0xfb, 0xff}}}, ""},
		{"unknown fields are skipped", `[{"n":"x","v":1,"ut":5,"label":{"a":[1]}}]`, []Record{{Name: "x", Kind: Number, Value: 1, Unknown: []string{"0.label"}}}, ""},
		{"an empty pack", `[]`, nil, ""},
		{"an unknown field that must be understood", `[{"n":"a","v":1},{"n":"x","v":1,"key_":2}]`, []Record{n("a", 1, time.Time{})}, "senml: 1.key_: offset 40: must be understood and is unknown"},
		{"an unknown version", `[{"bver":11,"n":"x","v":1}]`, nil, "senml: 0.bver: offset 11: is an unknown version"},
		{"two values", `[{"n":"x","v":1,"vs":"a"}]`, nil, "senml: 0.vs: offset 21: is a second value"},
		{"no value", `[{"n":"x"}]`, nil, "senml: 0.v: offset 10: is missing, and so are vs, vb, vd and s"},
		{"no name", `[{"v":1}]`, nil, "senml: 0.n: offset 8: is missing, and so is bn"},
		{"a number in a string", `[{"n":"x","v":"1"}]`, nil, "senml: 0.v: offset 17: is not a number"},
		{"a number beyond float64", `[{"n":"x","v":1e400}]`, nil, "senml: 0.v: offset 19: is not a number"},
		{"a sum that overflows", `[{"bv":1e308,"n":"x","v":1e308}]`, nil, "senml: 0.v: offset 31: exceeds the range of a number"},
		{"a time out of range", `[{"n":"x","v":1,"t":1e300}]`, nil, "senml: 0.t: offset 26: is not a time"},
		{"a time too far in the past", `[{"n":"x","v":1,"t":-1e12}]`, nil, "senml: 0.t: offset 26: is not a time"},
		{"an object", `{"n":"x","v":1}`, nil, "senml: offset 0: is not a list of records"},
		{"a number instead of a record", `[5]`, nil, "senml: 0: offset 1: is not a record"},
		{"invalid JSON", `[{"n":"x"`, nil, "json: offset 9: a comma or the end was expected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse([]byte(c.pack), now())
			relaytest.Equal(t, "the error", decoderstest.ErrorText(err), c.err)
			relaytest.Equal(t, "the records", got, c.want)
		})
	}
}

func TestSplitName(t *testing.T) {
	for _, c := range []struct{ name, device, key string }{
		{"urn:dev:ow:10e2073a01080063:voltage", "urn:dev:ow:10e2073a01080063", "voltage"},
		{"urn:dev:ow:10e2073a01080063", "urn:dev:ow:10e2073a01080063", "value"},
		{"urn:dev:mac:0024befffe804ff1_temp", "urn:dev:mac:0024befffe804ff1", "temp"},
		{"urn:dev:DEVEUI:0059ac0000000001:", "urn:dev:DEVEUI:0059ac0000000001", "value"},
		{"urn:dev:ow", "urn:dev:ow", "value"},
		{"https://example.com/pump/rpm", "https://example.com/pump", "rpm"},
		{"pump/", "pump", "value"},
		{"temp", "", "temp"},
	} {
		if device, key := SplitName(c.name); device != c.device || key != c.key {
			t.Errorf("%s: got %q, %q, want %q, %q", c.name, device, key, c.device, c.key)
		}
	}
}

func TestDecode(t *testing.T) {
	f := &decoders.Frame{NetworkTime: now(), Payload: []byte(`[{"bn":"urn:dev:ow:1:","n":"a","t":-1,"v":2,"s":7},{"n":"b","vd":"qw"}]`)}
	res, err := New().Decode(f)
	past := now().Add(-time.Second)
	want := []decoders.Reading{{Key: "a", Value: 2, Time: past}, {Key: "a.sum", Value: 7, Time: past}, {Key: "b", Text: "ab", IsText: true}}
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the readings", res.Readings, want)
	f.Encrypted = true
	res, err = New().Decode(f)
	decoderstest.Refused(t, err, "senml", "payload", -1)
	relaytest.Equal(t, "the readings of ciphertext", res.Readings, nil)
}

// FuzzParse checks that records are named, finite and limited, and that errors have the
// documented type.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`[{"bn":"d:","bt":1276020076,"bu":"A","bver":5,"n":"voltage","u":"V","v":120.1},{"n":"current","t":-5,"v":1.2}]`,
		`[{"n":"a","vb":true},{"n":"d","vd":"aGkg"},{"bs":1,"bv":2},{"n":"x"}]`, `[{"n":"x","t":-268435456,"v":1}]`, `[`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, pack []byte) {
		records, err := Parse(pack, now())
		var decoderErr *decoders.Error
		if err != nil && !errors.As(err, &decoderErr) {
			t.Fatalf("an error of an undocumented type: %v", err)
		}
		if len(records) > maxRecords {
			t.Fatalf("%d records, want at most %d", len(records), maxRecords)
		}
		for _, r := range records {
			if r.Name == "" || math.IsInf(r.Value, 0) || math.IsNaN(r.Value) || r.Kind == None && r.Sum == nil {
				t.Fatalf("the record %q of kind %d is out of bounds: value %v", r.Name, r.Kind, r.Value)
			}
			if y := r.Time.Year(); !r.Time.IsZero() && (y < 1970 || y > 9999) {
				t.Fatalf("the time %v is out of range", r.Time)
			}
		}
	})
}
