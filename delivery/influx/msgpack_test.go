package influx

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	httpapi "github.com/influxdata/influxdb-client-go/v2/api/http"
	"github.com/tinylib/msgp/msgp"

	"github.com/penstock/penstock/relay/account"
)

// pack writes in MessagePack what is written in JSON: integers where JSON has
// them, as the server does for times.
func pack(t testing.TB, text string) []byte {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return appendPacked(nil, v)
}

func appendPacked(b []byte, v any) []byte {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return msgp.AppendInt64(b, n)
		}
		f, _ := v.Float64()
		return msgp.AppendFloat64(b, f)
	case string:
		return msgp.AppendString(b, v)
	case bool:
		return msgp.AppendBool(b, v)
	case []any:
		b = msgp.AppendArrayHeader(b, uint32(len(v)))
		for _, e := range v {
			b = appendPacked(b, e)
		}
		return b
	case map[string]any:
		b = msgp.AppendMapHeader(b, uint32(len(v)))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			b = appendPacked(msgp.AppendString(b, k), v[k])
		}
		return b
	}
	return msgp.AppendNil(b)
}

// answers are what a server may say, and a part of the error that it comes to.
func answers() []struct{ name, json, want string } {
	const tags = `"tags":{"sensor_id":"d.1","key":"k","device_id":"d","identifier":"i"}`
	return []struct{ name, json, want string }{
		{"nothing found", `{"results":[{"statement_id":0,"series":[]}]}`, ""},
		{"numbers and texts", `{"results":[{"statement_id":0,"series":[{"name":"t",` + tags + `,"columns":["time","value","text"],"values":[[1740830400123456789,21.5,null],[2,-7,null],[1,null,"open"]]}]}]}`, ""},
		{"a number counts more than a text", `{"results":[{"series":[{"name":"t",` + tags + `,"values":[[1,2.5,"x"]]}]}]}`, ""},
		{"two series", `{"results":[{"series":[{"name":"a","values":[[1,2.5,null]]},{"name":"b","values":[[1,2.5,null]]}]}]}`, ""},
		{"messages are passed over", `{"results":[{"messages":[{"level":"warning","text":"x"}],"series":[]}]}`, ""},
		{"an error", `{"error":"unable to parse"}`, "unable to parse"},
		{"a statement's error", `{"results":[{"error":"timeout"}]}`, "timeout"},
		{"the database is gone", `{"results":[{"error":"database not found: x"}]}`, "database not found"},
		{"a part of a series", `{"results":[{"series":[{"name":"t","values":[[1,2.5,null]],"partial":true}]}]}`, "max-row-limit"},
		{"a row of two columns", `{"results":[{"series":[{"name":"t","values":[[1,2.5]]}]}]}`, "a row of 2 columns"},
		{"a time that is none", `{"results":[{"series":[{"name":"t","values":[["x",2.5,null]]}]}]}`, ""},
	}
}

func TestAnAnswerIsTheSameInBothForms(t *testing.T) {
	for _, tc := range answers() {
		t.Run(tc.name, func(t *testing.T) {
			want, wantErr := readPoints(7, []byte(tc.json))
			got, err := readPacked(7, pack(t, tc.json))
			if he, ok := errors.AsType[*httpapi.Error](err); ok {
				err = errors.New(errorReason(he))
			}
			if (err == nil) != (wantErr == nil) || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Fatalf("errors %v and in JSON %v, want %q", err, wantErr, tc.want)
			}
			if err == nil && len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nJSON %+v", got, want)
			}
		})
	}
}

func TestACutOrStrangeAnswerIsAnError(t *testing.T) {
	whole := pack(t, answers()[1].json)
	for n := range whole {
		if points, err := readPacked(7, whole[:n]); err == nil || points != nil {
			t.Fatalf("%d of %d octets: %d points and error %v", n, len(whole), len(points), err)
		}
	}
	for name, tc := range map[string]struct{ body, want string }{
		"more after it":          {string(whole) + "\xc0", "offset"},
		"an array":               {"\x90", "offset 0"},
		"four thousand million":  {"\x81\xa7results\xdd\xff\xff\xff\xff", "4294967295 elements in 0 octets"},
		"nothing but its length": {"\xdf\xff\xff\xff\xff", "offset 0"},
	} {
		if points, err := readPacked(7, []byte(tc.body)); err == nil || points != nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}

// FuzzPacked reads what a server may send in MessagePack: an error or points,
// each a number or a text, and never a panic.
func FuzzPacked(f *testing.F) {
	for _, a := range answers() {
		f.Add(pack(f, a.json))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		points, err := readPacked(account.ID(7), body)
		if err != nil && points != nil {
			t.Fatal("an error and points")
		}
		for _, p := range points {
			if p.IsText && p.Value != 0 || !p.IsText && p.Text != "" {
				t.Fatalf("a point of two kinds: %+v", p)
			}
		}
	})
}
