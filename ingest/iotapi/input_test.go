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

// FuzzInput reads bodies and times of any kind. What is taken as a number is one
// in JSON, and what is taken as a document is JSON unless it came as a text.
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
		var in newDevice
		if json.Unmarshal([]byte(s), &in) == nil && in.ParserParams != nil && !json.Valid([]byte(s)) {
			t.Errorf("%q passes for JSON", s)
		}
		var change rule.Change
		if json.Unmarshal([]byte(s), &change) == nil {
			for _, path := range unknownFields([]byte(s), reflect.TypeFor[rule.Change](), "") {
				if name := path[strings.LastIndexByte(path, '.')+1:]; !json.Valid([]byte(s)) || name == "when" || name == "actions" {
					t.Errorf("%q: %s is unknown", s, path)
				}
			}
		}
		p := relay.Problems{}
		at := parseMarkerTime(p, s)
		if len(p) > 0 || at.IsZero() {
			return
		}
		again, err := time.ParseInLocation(iot.TimeFormat, formatTime(at), time.UTC)
		if at.Year() <= 9999 && (err != nil || !again.Equal(at.Truncate(time.Second))) {
			t.Errorf("%q: %v is shown as %s", s, at, formatTime(at))
		}
	})
}
