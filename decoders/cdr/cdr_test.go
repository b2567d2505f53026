package cdr

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/relaytest"
)

func fixture(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	relaytest.NoError(t, err)
	return string(b)
}

// show returns a record in one line.
func show(c Call) string {
	at := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.Format("02T15:04:05.999")
	}
	return fmt.Sprintf("%s %s %s %s %d/%d %s>%s %s %s", c.ID, at(c.Start), at(c.Answer), at(c.End), c.Duration, c.Billsec, c.From, c.To, c.Disposition, c.Trunk)
}

const call1 = "2b6aa8f2-41c3-4f0f-b2fd-6d7b7f3f2a51 21T09:34:15 21T09:34:20 21T09:35:12 57/52 +447700900123>447860000001 NORMAL_CLEARING carrier-a"

func TestParse(t *testing.T) {
	fs := fixture(t, "freeswitch.json")
	for name, tc := range map[string]struct {
		body string
		want []string
		errs []string
	}{
		"a call of FreeSWITCH":               {fs, []string{call1}, nil},
		"the same as a form":                 {"cdr=" + url.QueryEscape(fs), []string{call1}, nil},
		"the same as a form without escapes": {"cdr=" + fs, []string{call1}, nil},
		"FreeSWITCH with the times of the callflow": {
			`{"variables":{"uuid":"u"},"callflow":{"caller_profile":{"ani":"1","destination_number":"2","network_addr":"192.0.2.9"},"times":{"created_time":"1795253655123456","answered_time":"0","hangup_time":"1795253665123456"}}}`,
			[]string{"u 21T09:34:15 - 21T09:34:25 10/0 1>2  192.0.2.9"}, nil,
		},
		"FreeSWITCH without a uuid": {`{"variables":{"start_epoch":"1795253655"}}`, nil, []string{"freeswitch: id: offset 0: is missing"}},
		"an invalid callflow":       {`{"callflow":7}`, nil, []string{"freeswitch: callflow: offset 0: has no caller_profile"}},
		"lines of Asterisk": {
			fixture(t, "asterisk.csv"),
			[]string{
				"1795253655.41 20T09:34:15 20T09:34:20 20T09:35:12 57/52 447700900123>447860000001 ANSWERED carrier-a",
				"7c41d2 20T09:40:00 - 20T09:40:09 9/0 447700900124>447860000002 NO ANSWER ",
			}, nil,
		},
		"a short line of Asterisk, and a valid one": {
			"\"a\",\"b\"\n" + fixture(t, "asterisk.csv"),
			[]string{
				"1795253655.41 20T09:34:15 20T09:34:20 20T09:35:12 57/52 447700900123>447860000001 ANSWERED carrier-a",
				"7c41d2 20T09:40:00 - 20T09:40:09 9/0 447700900124>447860000002 NO ANSWER ",
			},
			[]string{"asterisk: line: offset 0: has 2 columns instead of 16 to 21"},
		},
		"an invalid time of Asterisk": {
			strings.Replace(strings.SplitAfter(fixture(t, "asterisk.csv"), "\n")[0], "2026-11-20 09:34:20", "yesterday", 1), nil,
			[]string{"asterisk: answer: offset 0: must be YYYY-MM-DD HH:MM:SS"},
		},
		"records in the own format": {
			fixture(t, "records.jsonl"),
			[]string{
				"c1 20T09:34:15 20T09:34:20 20T09:35:12 57/52 447700900123>447860000001 ANSWERED carrier-a",
				"2 20T09:34:15.25 - 20T09:34:24 8/0 447700900124>sip:desk@example.com  ",
			}, nil,
		},
		"an array":                              {`[{"id":"a","start":"2026-11-20T00:00:00Z"}, 7]`, []string{"a 20T00:00:00 - - 0/0 >  "}, []string{"json: record: offset 0: is not an object"}},
		"one after another without lines":       {`{"id":"a","start":"2026-11-20T00:00:00Z"}{"id":"b","start":"2026-11-20 00:00:01"}`, []string{"a 20T00:00:00 - - 0/0 >  ", "b 20T00:00:01 - - 0/0 >  "}, nil},
		"a broken line among others":            {"{\"id\":\"a\",\"start\":\"2026-11-20T00:00:00Z\"}\n{\"id\":\n{\"id\":\"b\",\"start\":\"2026-11-20T00:00:00Z\"}", []string{"a 20T00:00:00 - - 0/0 >  ", "b 20T00:00:00 - - 0/0 >  "}, []string{"json: body: offset 42: is not valid JSON"}},
		"no id":                                 {`{"start":"2026-11-20T00:00:00Z"}`, nil, []string{"json: id: offset 0: is missing"}},
		"no start":                              {`{"id":"a"}`, nil, []string{"json: start: offset 0: is missing"}},
		"an invalid start":                      {`{"id":"a","start":"2026-13-20T00:00:00Z"}`, nil, []string{"json: start: offset 0: must be a time like 2026-01-31T12:00:00Z"}},
		"a start before telephones":             {`{"id":"a","start":"1066-10-14T00:00:00Z"}`, nil, []string{"json: start: offset 0: lies outside 1970 to 2200"}},
		"a negative length":                     {`{"id":"a","start":"2026-11-20T00:00:00Z","billsec":-1}`, nil, []string{"json: billsec: offset 0: must be a number of seconds from 0 to 1,000,000,000"}},
		"a negative length of FreeSWITCH":       {`{"variables":{"uuid":"u","start_epoch":"1795253655","duration":"-5"}}`, nil, []string{"freeswitch: duration: offset 0: must be a number of seconds from 0 to 1,000,000,000"}},
		"an end before the start":               {`{"id":"a","start":"2026-11-20T00:00:01Z","end":"2026-11-20T00:00:00Z"}`, nil, []string{"json: end: offset 0: is before the start"}},
		"an answer before the start":            {`{"id":"a","start":"2026-11-20T00:00:01Z","answer":"2026-11-20T00:00:00Z"}`, nil, []string{"json: answer: offset 0: is before the start"}},
		"an end before the answer":              {`{"id":"a","start":"2026-11-20T00:00:00Z","answer":"2026-11-20T00:00:02Z","end":"2026-11-20T00:00:01Z"}`, nil, []string{"json: end: offset 0: is before the answer"}},
		"an end before the start of FreeSWITCH": {`{"variables":{"uuid":"u","start_epoch":"1795253655","end_epoch":"1795253654"}}`, nil, []string{"freeswitch: end: offset 0: is before the start"}},
		"an end before the start of Asterisk": {
			strings.Replace(strings.SplitAfter(fixture(t, "asterisk.csv"), "\n")[0], "2026-11-20 09:35:12", "2026-11-20 09:34:10", 1), nil, []string{"asterisk: end: offset 0: is before the start"},
		},
		"an invalid duration":       {`{"id":"a","start":"2026-11-20T00:00:00Z","duration":1.5}`, nil, []string{"json: duration: offset 0: must be a whole number of seconds"}},
		"a length with a plus sign": {`{"id":"a","start":"2026-11-20T00:00:00Z","duration":"+5"}`, nil, []string{"json: duration: offset 0: must be a whole number of seconds"}},
		"a length with a plus sign of Asterisk": {
			strings.Replace(strings.SplitAfter(fixture(t, "asterisk.csv"), "\n")[0], ",57,52,", ",+57,52,", 1), nil, []string{"asterisk: duration: offset 0: must be a whole number of seconds"},
		},
		"a number that is an object": {`{"id":"a","start":"2026-11-20T00:00:00Z","from":{}}`, nil, []string{"json: from: offset 0: must be a string"}},
		"a text that is too long":    {`{"id":"a","start":"2026-11-20T00:00:00Z","to":"` + strings.Repeat("1", 256) + `"}`, nil, []string{"json: to: offset 0: is longer than 255 bytes"}},
		"nothing":                    {" \n", nil, []string{"cdr: body: offset 0: is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			calls, _, errs := Parse([]byte(tc.body))
			var got []string
			for _, c := range calls {
				line := show(c)
				if c.ID == c.Key && len(c.ID) == 32 { // a digest
					line = "7c41d2" + line[32:]
				}
				got = append(got, line)
			}
			relaytest.Equal(t, "the calls", got, tc.want)
			relaytest.Equal(t, "the errors", texts(errs), tc.errs)
		})
	}
}

func TestUnusedFieldsAreNoted(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want decoders.Notes
	}{
		"a duration of FreeSWITCH that is not a number": {`{"variables":{"uuid":"u","start_epoch":"1795253655","end_epoch":"1795253660","duration":"5 s"}}`,
			decoders.Notes{`freeswitch: duration: offset 0: "5 s" is not a whole number; it is computed from the times`}},
		"a time of FreeSWITCH that is not a number": {`{"variables":{"uuid":"u","start_epoch":"1795253655","answer_epoch":"never"}}`,
			decoders.Notes{`freeswitch: answer_epoch: offset 0: "never" is not a whole number; the callflow's time is used`}},
		"an unknown field":   {`{"id":"a","start":"2026-11-20T00:00:00Z","bill_sec":5}`, decoders.Notes{"json: bill_sec: offset 0: is not known and is not used"}},
		"a record of a call": {`{"id":"a","start":"2026-11-20T00:00:00Z","billsec":5}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			calls, notes, errs := Parse([]byte(tc.body))
			relaytest.Equal(t, "the number of calls and errors", []int{len(calls), len(errs)}, []int{1, 0})
			relaytest.Equal(t, "the notes", notes, tc.want)
		})
	}
	uses, notes, errs := ParseUses([]byte(`{"id":"a","ICCID":"89","start_time":"2026-11-20T00:00:00Z","type":"data","byte":5}`))
	relaytest.Equal(t, "the number of uses and errors", []int{len(uses), len(errs)}, []int{1, 0})
	relaytest.Equal(t, "the notes of a use", notes, decoders.Notes{"json: byte: offset 0: is not known and is not used"})
}

// texts returns the texts of errors.
func texts(errs []error) (list []string) {
	for _, err := range errs {
		list = append(list, err.Error())
	}
	return list
}

func TestRecordsOfOneCallHaveDifferentKeys(t *testing.T) {
	line := strings.SplitAfter(fixture(t, "asterisk.csv"), "\n")[0]
	calls, _, _ := Parse([]byte(line + line + strings.Replace(line, "carrier-a-", "carrier-b-", 1)))
	if len(calls) != 3 {
		t.Fatalf("%d calls, want 3", len(calls))
	}
	relaytest.Equal(t, "the key of a repeated line", calls[1].Key, calls[0].Key)
	relaytest.Equal(t, "the call of another channel", calls[2].ID, calls[0].ID)
	if calls[2].Key == calls[0].Key {
		t.Errorf("the record of another channel has the same key %q", calls[2].Key)
	}
}

func TestSource(t *testing.T) {
	for body, want := range map[string]string{
		fixture(t, "freeswitch.json"): "freeswitch", "cdr=" + url.QueryEscape(fixture(t, "freeswitch.json")): "freeswitch",
		fixture(t, "asterisk.csv"): "asterisk", fixture(t, "records.jsonl"): "json", "[]": "json", "": "asterisk",
	} {
		if got := Source([]byte(body)); got != want {
			t.Errorf("%s: %.40s", got, body)
		}
	}
}

func TestTheNumberOfErrorsIsLimited(t *testing.T) {
	if calls, _, errs := Parse([]byte(strings.Repeat("{}\n", 1000))); len(calls) != 0 || len(errs) != maxErrors {
		t.Errorf("%d calls, %d errors", len(calls), len(errs))
	}
}

// After too many errors the parser stops. Otherwise this test would take hours.
func TestTheParserStopsAfterTooManyErrors(t *testing.T) {
	if _, _, errs := Parse([]byte(strings.Repeat("{\n", 2<<20))); len(errs) != maxErrors {
		t.Errorf("%d errors, want %d", len(errs), maxErrors)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"freeswitch.json", "asterisk.csv", "records.jsonl"} {
		f.Add([]byte(fixture(f, name)))
	}
	f.Add([]byte("cdr=" + url.QueryEscape(fixture(f, "freeswitch.json"))))
	f.Add([]byte(`[{"id":"a","start":"2026-11-20T00:00:00Z"}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		calls, _, errs := Parse(body)
		if len(calls) == 0 && len(errs) == 0 && len(content(body)) > 0 && !strings.HasPrefix(string(content(body)), "[") {
			t.Error("neither records nor a reason")
		}
		for _, c := range calls {
			if c.ID == "" || c.Key == "" || c.Start.Year() < 1970 || c.Duration < 0 || len(c.From) > maxText {
				t.Errorf("the record %q with key %q is out of bounds: start %s, %d seconds", c.ID, c.Key, c.Start, c.Duration)
			}
		}
	})
}
