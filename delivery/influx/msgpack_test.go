package influx

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	httpapi "github.com/influxdata/influxdb-client-go/v2/api/http"
	"github.com/tinylib/msgp/msgp"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

// msgpackOf converts JSON to MessagePack. Integers stay integers, like the times of the server.
func msgpackOf(t testing.TB, text string) []byte {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	relaytest.NoError(t, d.Decode(&v))
	return appendMsgpack(nil, v)
}

func appendMsgpack(b []byte, v any) []byte {
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
			b = appendMsgpack(b, e)
		}
		return b
	case map[string]any:
		b = msgp.AppendMapHeader(b, uint32(len(v)))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			b = appendMsgpack(msgp.AppendString(b, k), v[k])
		}
		return b
	}
	return msgp.AppendNil(b)
}

// responses returns responses of a server. want is a part of the error, or "" for valid responses.
func responses() []struct{ name, json, want string } {
	const tags = `"tags":{"sensor_id":"d.1","key":"k","device_id":"d","identifier":"i"}`
	return []struct{ name, json, want string }{
		{"no series", `{"results":[{"statement_id":0,"series":[]}]}`, ""},
		{"numbers and strings", `{"results":[{"statement_id":0,"series":[{"name":"t",` + tags + `,"columns":["time","value","text"],"values":[[1740830400123456789,21.5,null],[2,-7,null],[1,null,"open"]]}]}]}`, ""},
		{"a number has priority over a string", `{"results":[{"series":[{"name":"t",` + tags + `,"values":[[1,2.5,"x"]]}]}]}`, ""},
		{"two series", `{"results":[{"series":[{"name":"a","values":[[1,2.5,null]]},{"name":"b","values":[[1,2.5,null]]}]}]}`, ""},
		{"messages are ignored", `{"results":[{"messages":[{"level":"warning","text":"x"}],"series":[]}]}`, ""},
		{"an error", `{"error":"unable to parse"}`, "unable to parse"},
		{"a statement's error", `{"results":[{"error":"timeout"}]}`, "timeout"},
		{"an unknown database", `{"results":[{"error":"database not found: x"}]}`, "database not found"},
		{"a truncated series", `{"results":[{"series":[{"name":"t","values":[[1,2.5,null]],"partial":true}]}]}`, "max-row-limit"},
		{"a row of two columns", `{"results":[{"series":[{"name":"t","values":[[1,2.5]]}]}]}`, "a row of 2 columns"},
		{"a string instead of a time", `{"results":[{"series":[{"name":"t","values":[["x",2.5,null]]}]}]}`, ""},
	}
}

func TestAResponseIsTheSameInBothFormats(t *testing.T) {
	for _, tc := range responses() {
		t.Run(tc.name, func(t *testing.T) {
			want, wantErr := readPoints(7, []byte(tc.json))
			got, err := readMsgpack(7, msgpackOf(t, tc.json))
			if he, ok := errors.AsType[*httpapi.Error](err); ok {
				err = errors.New(errorReason(he))
			}
			if (err == nil) != (wantErr == nil) || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Fatalf("error of MessagePack = %v, error of JSON = %v, want both to contain %q", err, wantErr, tc.want)
			}
			if err == nil {
				relaytest.Equal(t, "the points of MessagePack, compared with JSON", got, want, cmpopts.EquateEmpty())
			}
		})
	}
}

func TestATruncatedOrMalformedResponseIsAnError(t *testing.T) {
	complete := msgpackOf(t, responses()[1].json)
	for n := range complete {
		if points, err := readMsgpack(7, complete[:n]); err == nil || points != nil {
			t.Fatalf("the first %d of %d octets: %d points and the error %v, want an error only", n, len(complete), len(points), err)
		}
	}
	for name, tc := range map[string]struct{ body, want string }{
		"octets after the response":            {string(complete) + "\xc0", "offset"},
		"an array":                             {"\x90", "offset 0"},
		"a length beyond the remaining octets": {"\x81\xa7results\xdd\xff\xff\xff\xff", "4294967295 elements in 0 octets"},
		"a length only":                        {"\xdf\xff\xff\xff\xff", "offset 0"},
	} {
		if points, err := readMsgpack(7, []byte(tc.body)); err == nil || points != nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %d points and the error %v, want %q", name, len(points), err, tc.want)
		}
	}
}

// FuzzMsgpack checks that a response in MessagePack is an error or points, each a
// number or a text, and never a panic.
func FuzzMsgpack(f *testing.F) {
	for _, a := range responses() {
		f.Add(msgpackOf(f, a.json))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		points, err := readMsgpack(relay.AccountID(7), body)
		if err != nil && points != nil {
			t.Fatal("readMsgpack returned points and an error")
		}
		for _, p := range points {
			if p.IsText && p.Value != 0 || !p.IsText && p.Text != "" {
				t.Fatalf("a point has the number %v and the text %q", p.Value, p.Text)
			}
		}
	})
}
