package iotapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/rule"
)

// FuzzInput parses bodies and times: only fields that a rule lacks are unknown, and an accepted
// time survives formatting and parsing.
func FuzzInput(f *testing.F) {
	for _, seed := range []string{
		`{"longitude":"-2.0943","parser_params":{"k":[1]}}`, `{"longitude":1e999,"parser_params":"x"}`, `{"longitude":null,"parser_params":null}`,
		`{"longitude":[1]}`, `{"longitude":true,"parser_params":[{}]}`, `{"longitude":"`, `{"parser_params":-0}`, `[]`, `null`,
		`{"when":"x","wen":"y","actions":[{"to":1},null],"devices":{"":[{}]}}`, `{"DEVICES":{"ids":null},"batch":7}`,
		"2026-01-31 12:00:00", "2026-01-31T12:00:00+14:00", "0000-01-01 00:00:00", "9999-12-31T23:59:59-23:59", "2026-02-30 00:00:00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_ = json.Unmarshal([]byte(s), new(newDevice)) // must not panic
		var change rule.Change
		if json.Unmarshal([]byte(s), &change) == nil {
			for _, path := range unknownFields([]byte(s), reflect.TypeFor[rule.Change](), "") {
				if name := path[strings.LastIndexByte(path, '.')+1:]; name == "when" || name == "actions" {
					t.Errorf("%q: field %s reported as unknown", s, path)
				}
			}
		}
		p := relay.Problems{}
		parsed := parseMarkerTime(p, s)
		if len(p) > 0 || parsed.IsZero() {
			return
		}
		reparsed, err := time.ParseInLocation(iot.TimeFormat, formatTime(parsed), time.UTC)
		if parsed.Year() <= 9999 && (err != nil || !reparsed.Equal(parsed.Truncate(time.Second))) {
			t.Errorf("%q: time %v is formatted as %s", s, parsed, formatTime(parsed))
		}
	})
}
