package condition

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func testFrame() Subject {
	rssi, port, latitude := -97.5, int64(2), 51.5
	return Subject{
		Values:   map[string]any{"temperature": 31.5, "air.humidity": 40.0, "door": "open", "long": strings.Repeat("a", 5000), "count": 3.0},
		Previous: map[string]any{"temperature": 25.0},
		Device: Device{
			ID: "d1", Identifier: "0102030405060708", Name: "Cold room 1", DecoderID: "dec1", LocationID: "loc1",
			LastSeenAt: time.Date(2026, 7, 3, 7, 5, 0, 0, time.UTC), Latitude: &latitude,
		},
		Uplink:    Uplink{FPort: &port, RSSI: &rssi, Time: time.Date(2026, 7, 3, 9, 5, 0, 0, time.UTC)},
		Event:     map[string]any{"type": "status", "battery": 20.0, "detail": map[string]any{"code": "x1"}},
		FrameTime: time.Date(2026, 7, 3, 9, 5, 0, 0, time.UTC), // a Friday
	}
}

func TestRuleConditions(t *testing.T) {
	for source, want := range map[string]bool{
		`values.temperature > 30`:                                            true,
		`values["air.humidity"] < 40 or values.door == "open"`:               true,
		`values.temperature - previous.temperature >= 6.5`:                   true,
		`abs(values.temperature - 31) < 1 and round(values.count) == 3`:      true,
		`device.name startsWith "Cold" and device.decoder_id == "dec1"`:      true,
		`device.latitude > 51 and device.location_id != "loc1"`:              false,
		`uplink.rssi < -90 and uplink.f_port == 2`:                           true,
		`event.type == "status" and event.battery <= 20`:                     true,
		`event.detail.code == "x1"`:                                          true,
		`hour >= 8 and hour < 18 and weekday == 5`:                           true,
		`now - device.last_seen_at > duration("1h")`:                         true,
		`(now - device.last_seen_at).Hours() >= 3`:                           false,
		`values.door matches "^op" ? values.count == 3 : false`:              true,
		`"door" in values and not ("window" in values)`:                      true,
		`(values.window ?? "shut") == "shut" and values?.window == nil`:      true,
		`values.window == nil and nil != values.door`:                        true,
		`values.count in [1, 3] and min(values.count, 7) == 3`:               true,
		`values.door + values.count == "open3"`:                              true,
		`values.count + 1 == 4 and values.count * 2 - 1 == 5`:                true,
		`values.temperature > 40 and values.window == "never looked at"`:     false,
		`values.temperature > 30 or values.window == "never looked at"`:      true,
		`values.long matches "a{90}b" or len(values.long) == 2000`:           true,
		"values.temperature > 30 // what follows is a comment\n  and 1 == 1": true,
	} {
		c, err := CompileRule(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		for range 2 { // the second run reuses the machine of the first
			if got, err := c.Holds(new(testFrame())); err != nil || got != want {
				t.Errorf("%s: got %t, want %t; %v", source, got, want, err)
			}
		}
	}
}

func TestAConditionDoesNotHoldWithoutItsValues(t *testing.T) {
	for source, missing := range map[string]string{
		`values.window > 3`:                             "values.window",
		`not (values.window > 3)`:                       "values.window",
		`values.window != 3`:                            "values.window",
		`values.door == "open" and values.window != 3`:  "values.window",
		`values.door == "shut" or values.window < 3`:    "values.window",
		`values.door == "open" ? values.window : true`:  "values.window",
		`(values.window ?? values.other) > 3`:           "values.other",
		`values.temperature > previous.door`:            "previous.door",
		`event.margin < 3`:                              "event.margin",
		`uplink.snr < 0`:                                "uplink.snr",
		`device.longitude > 0`:                          "device.longitude",
		`1 == 2 or (2 == 2 and event.margin.low == 1)`:  "event.margin",
		`values.door == "shut" or previous.door.x == 1`: "previous.door",
	} {
		c, err := CompileRule(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		holds, err := c.Holds(new(testFrame()))
		relaytest.Equal(t, source+": whether the condition holds", holds, false)
		missingErr, isMissing := errors.AsType[*MissingKey](err)
		if !isMissing {
			t.Errorf("%s: the error is %v, want a missing key", source, err)
			continue
		}
		relaytest.Equal(t, source+": key and text of the error", []string{missingErr.Name, missingErr.Error()}, []string{missing, missing + " is missing"})
	}
}

func TestFaultsOfAConditionHaveAReason(t *testing.T) {
	for source, message := range map[string]string{
		`values.door > 3`:                      "line 1, column 13: invalid operation: string > int",
		`values.count == 3 and values.door`:    "bool(string)",
		`values.count`:                         "bool(float64)",
		`now - device.last_seen_at > hour`:     "Duration",
		`values.door matches "o" == event.x.y`: "event.x is missing",
	} {
		c, err := CompileRule(source)
		if err == nil {
			_, err = c.Holds(new(testFrame()))
		}
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v, want …%s…", source, err, message)
		}
	}
}

func TestInvalidRuleConditionsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ source, message string }{
		"an empty source":                 {"", "line 1, column 1: unexpected end of the expression"},
		"an incomplete expression":        {"values.a >", "line 1, column 10: unexpected end of the expression"},
		"a number":                        {"hour", "expected bool"},
		"an unknown name":                 {"valeus.a == 1", "line 1, column 1: unknown name valeus; did you mean values?"},
		"an unknown name in line 2":       {"hour == 7 and\n  colour == 1", "line 2, column 3: unknown name colour; did you mean values.colour?"},
		"a reading without its root":      {"temperature > 30", "line 1, column 1: unknown name temperature; did you mean values.temperature?"},
		"a key with dots":                 {"air.temperature > 30", `line 1, column 1: unknown name air; did you mean values["air.temperature"]?`},
		"radio data without its root":     {"rssi < -115", "line 1, column 1: unknown name rssi; did you mean uplink.rssi?"},
		"a device without its root":       {"decoder_id == \"\"", "line 1, column 1: unknown name decoder_id; did you mean device.decoder_id?"},
		"a method of an unknown name":     {"foo.Bar() == 1", "line 1, column 1: unknown name foo"},
		"a misspelt function":             {"ruond(values.a) == 1", "line 1, column 1: unknown name ruond; did you mean round?"},
		"an unknown field of device":      {"hour == 7 and device.nmae == \"\"", "line 1, column 22: unknown name device.nmae; did you mean device.name?"},
		"an unknown field of uplink":      {"uplink.freq > 1", "unknown name uplink.freq"},
		"a name of a slot":                {"$env[\"values.a\"] == 1", "unknown name $env"},
		"a key that is computed":          {"values[device.name] == 1", "line 1, column 15: the name after values must be a literal"},
		"a number for a string":           {"device.name == 1", "mismatched types"},
		"a predicate":                     {"all([1, 2], # > 0)", "no predicates"},
		"an unknown function":             {"repeat(device.name, 1000) == \"\"", "unknown name repeat"},
		"the internal function join_":     {"join_(1, 2) == 3", "unknown name join_"},
		"the internal function present_":  {"present_(values.a, \"x\") == 3", "unknown name present_"},
		"an unknown method":               {"now.Format(\"2006\") == \"\"", "unknown function"},
		"a function for a value":          {"hour == 1 or string == values.a", "line 1, column 14: string is a function"},
		"let":                             {"let a = 1; a == 1", "no predicates and no let"},
		"a range":                         {"hour in 1..100000", "line 1, column 10: a condition has no .."},
		"a pattern that is not a literal": {"device.name matches device.id", "line 1, column 28: the pattern of matches must be a literal"},
		"a pattern that costs too much":   {`device.name matches "(a?){150}a{150}"`, "cost too much"},
		"a source that is too long":       {strings.Repeat("hour == 7 or ", 90) + "true", "longer than 1024 bytes"},
		"too many nodes":                  {strings.Repeat("!", 300) + "true", "exceeds maximum"},
		"a source that is not UTF-8":      {"device.name == \"\xff\"", "not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := CompileRule(tc.source)
			wantError(t, err, tc.message)
		})
	}
}

func TestKeysOfARule(t *testing.T) {
	for source, want := range map[string]struct {
		keys     []string
		previous bool
	}{
		`values.b > 1 and values["a.c"] == values.b`:      {[]string{"a.c", "b"}, false},
		`(values.a ?? previous.z) > 1 or device.id == ""`: {[]string{"a", "z"}, true},
		`len(previous) > 0`:                               {nil, true},
		`event.x == 1 and "k" in values`:                  {nil, false},
	} {
		c, err := CompileRule(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if !slices.Equal(c.Keys(), want.keys) || c.UsesPrevious() != want.previous {
			t.Errorf("%s: keys %q, previous %t; want %q, %t", source, c.Keys(), c.UsesPrevious(), want.keys, want.previous)
		}
	}
}

func TestRuleBodies(t *testing.T) {
	extra := map[string]any{"rule": map[string]any{"id": "r1", "name": "Warm <1>"}, "state": "raised", "alarm_id": "a1"}
	for source, want := range map[string]string{
		`{"t": values.temperature, "of": device.name}`:         `{"of":"Cold room 1","t":31.5}`,
		`device.name + " is at " + values.temperature + " °C"`: `"Cold room 1 is at 31.5 °C"`,
		`[rule.id, rule.name, state, alarm_id]`:                `["r1","Warm <1>","raised","a1"]`,
		`{"readings": previous, "at": uplink.time}`:            `{"at":"2026-07-03T09:05:00Z","readings":{"temperature":25}}`,
		`{"w": values.window, "d": values.window ?? "none"}`:   `{"d":"none","w":null}`,
		`"no " + values.window + "."`:                          `"no ."`,
		`[state, string(hour), string(values.temperature), string(values.window), string(1 == 1), string(uplink.time)]`: `["raised","9","31.5","","true","2026-07-03T09:05:00Z"]`,
		`state == "raised" ? 1 : 0`:           `1`,
		`round(values.temperature * 10) / 10`: `31.5`,
		`uplink`:                              `{"f_port":2,"rssi":-97.5,"time":"2026-07-03T09:05:00Z"}`,
		`device`: `{"decoder_id":"dec1","id":"d1","identifier":"0102030405060708","last_seen_at":"2026-07-03T07:05:00Z",` +
			`"latitude":51.5,"location_id":"loc1","name":"Cold room 1"}`,
	} {
		b, err := CompileBody(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got, err := b.JSON(testFrame(), extra); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", source, got, err, want)
		}
	}
}

func TestInvalidRuleBodiesAreRefused(t *testing.T) {
	for source, message := range map[string]string{
		`{"a": }`:                             "line 1, column 7: unexpected token",
		`map([1], #)`:                         "a body has no predicates and no let",
		`rule.colour`:                         "line 1, column 6: unknown field colour",
		`1..9`:                                "a body has no ..",
		"{\n  \"a\": vlaues.a}":               "line 2, column 8: unknown name vlaues; did you mean values?",
		`"` + strings.Repeat("x", 5000) + `"`: "longer than 4096 bytes",
	} {
		if _, err := CompileBody(source); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v, want …%s…", source, err, message)
		}
	}
}

func TestBodiesThatCannotBeEncoded(t *testing.T) {
	for source, message := range map[string]string{
		`values.window * 2`: "line 1, column 15: invalid operation: <nil> * int",
		`string(values)`:    "string needs a string",
		`values.count / 0`:  "the body is not valid JSON",
		`values.long + "b"`: "a string would be longer than 1024 bytes",
		`[values,values,values,values,values,values,values,values,values,values,values,values,values,values]`: "the body is longer than 65536 bytes",
	} {
		b, err := CompileBody(source)
		if err == nil {
			_, err = b.JSON(testFrame(), nil)
		}
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v, want …%s…", source, err, message)
		}
	}
}

func TestRuleConditionsAreSafeForConcurrentUse(t *testing.T) {
	c, err := CompileRule(`values.temperature > previous.temperature + 6 and (values.window ?? 1) == 1`)
	relaytest.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := testFrame()
			s.Values["temperature"] = 27.0 + float64(i)
			for range 500 {
				if got, err := c.Holds(&s); err != nil || got != (i > 4) {
					t.Errorf("goroutine %d: got %t, want %t; %v", i, got, i > 4, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
