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

// formatCall formats a call as one line.
func formatCall(c Call) string {
	formatTime := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.Format("02T15:04:05.999")
	}
	return fmt.Sprintf("%s %s %s %s %d/%d %s>%s %s %s", c.ID, formatTime(c.Start), formatTime(c.Answer), formatTime(c.End), c.Duration, c.Billsec, c.From, c.To, c.Disposition, c.Trunk)
}

const call1 = "2b6aa8f2-41c3-4f0f-b2fd-6d7b7f3f2a51 21T09:34:15 21T09:34:20 21T09:35:12 57/52 +447700900123>447860000001 NORMAL_CLEARING carrier-a"

func TestParse(t *testing.T) {
	fs := fixture(t, "freeswitch.json")
	for name, tc := range map[string]struct {
		body string
		want []string
		errs []string
	}{
		"a FreeSWITCH call":                           {fs, []string{call1}, nil},
		"a FreeSWITCH call in a form":                 {"cdr=" + url.QueryEscape(fs), []string{call1}, nil},
		"a FreeSWITCH call in a form without escapes": {"cdr=" + fs, []string{call1}, nil},
		"FreeSWITCH times in the callflow": {
			`{"variables":{"uuid":"u"},"callflow":{"caller_profile":{"ani":"1","destination_number":"2","network_addr":"192.0.2.9"},"times":{"created_time":"1795253655123456","answered_time":"0","hangup_time":"1795253665123456"}}}`,
			[]string{"u 21T09:34:15 - 21T09:34:25 10/0 1>2  192.0.2.9"}, nil,
		},
		"FreeSWITCH without a uuid":              {`{"variables":{"start_epoch":"1795253655"}}`, nil, []string{"freeswitch: id: offset 0: is missing"}},
		"a FreeSWITCH callflow that is a number": {`{"callflow":7}`, nil, []string{"freeswitch: callflow: offset 0: has no caller_profile"}},
		"Asterisk lines": {
			fixture(t, "asterisk.csv"),
			[]string{
				"1795253655.41 20T09:34:15 20T09:34:20 20T09:35:12 57/52 447700900123>447860000001 ANSWERED carrier-a",
				"7c41d2 20T09:40:00 - 20T09:40:09 9/0 447700900124>447860000002 NO ANSWER ",
			}, nil,
		},
		"an Asterisk line with too few columns before valid lines": {
			"\"a\",\"b\"\n" + fixture(t, "asterisk.csv"),
			[]string{
				"1795253655.41 20T09:34:15 20T09:34:20 20T09:35:12 57/52 447700900123>447860000001 ANSWERED carrier-a",
				"7c41d2 20T09:40:00 - 20T09:40:09 9/0 447700900124>447860000002 NO ANSWER ",
			},
			[]string{"asterisk: line: offset 0: has 2 columns instead of 16 to 21"},
		},
		"an invalid Asterisk time": {
			strings.Replace(strings.SplitAfter(fixture(t, "asterisk.csv"), "\n")[0], "2026-11-20 09:34:20", "yesterday", 1), nil,
			[]string{"asterisk: answer: offset 0: must be YYYY-MM-DD HH:MM:SS"},
		},
		"records in Penstock's JSON format": {
			fixture(t, "records.jsonl"),
			[]string{
				"c1 20T09:34:15 20T09:34:20 20T09:35:12 57/52 447700900123>447860000001 ANSWERED carrier-a",
				"2 20T09:34:15.25 - 20T09:34:24 8/0 447700900124>sip:desk@example.com  ",
			}, nil,
		},
		"an array with an invalid item":                {`[{"id":"a","start":"2026-11-20T00:00:00Z"}, 7]`, []string{"a 20T00:00:00 - - 0/0 >  "}, []string{"json: record: offset 0: is not an object"}},
		"records without line breaks between them":     {`{"id":"a","start":"2026-11-20T00:00:00Z"}{"id":"b","start":"2026-11-20 00:00:01"}`, []string{"a 20T00:00:00 - - 0/0 >  ", "b 20T00:00:01 - - 0/0 >  "}, nil},
		"an invalid line between valid lines":          {"{\"id\":\"a\",\"start\":\"2026-11-20T00:00:00Z\"}\n{\"id\":\n{\"id\":\"b\",\"start\":\"2026-11-20T00:00:00Z\"}", []string{"a 20T00:00:00 - - 0/0 >  ", "b 20T00:00:00 - - 0/0 >  "}, []string{"json: body: offset 42: is not valid JSON"}},
		"no id":                                        {`{"start":"2026-11-20T00:00:00Z"}`, nil, []string{"json: id: offset 0: is missing"}},
		"no start":                                     {`{"id":"a"}`, nil, []string{"json: start: offset 0: is missing"}},
		"an invalid start":                             {`{"id":"a","start":"2026-13-20T00:00:00Z"}`, nil, []string{"json: start: offset 0: must be a time like 2026-01-31T12:00:00Z"}},
		"a start before 1970":                          {`{"id":"a","start":"1066-10-14T00:00:00Z"}`, nil, []string{"json: start: offset 0: lies outside 1970 to 2200"}},
		"a negative billed duration":                   {`{"id":"a","start":"2026-11-20T00:00:00Z","billsec":-1}`, nil, []string{"json: billsec: offset 0: must be a number of seconds from 0 to 1,000,000,000"}},
		"a negative FreeSWITCH duration":               {`{"variables":{"uuid":"u","start_epoch":"1795253655","duration":"-5"}}`, nil, []string{"freeswitch: duration: offset 0: must be a number of seconds from 0 to 1,000,000,000"}},
		"an end before the start":                      {`{"id":"a","start":"2026-11-20T00:00:01Z","end":"2026-11-20T00:00:00Z"}`, nil, []string{"json: end: offset 0: is before the start"}},
		"an answer before the start":                   {`{"id":"a","start":"2026-11-20T00:00:01Z","answer":"2026-11-20T00:00:00Z"}`, nil, []string{"json: answer: offset 0: is before the start"}},
		"an end before the answer":                     {`{"id":"a","start":"2026-11-20T00:00:00Z","answer":"2026-11-20T00:00:02Z","end":"2026-11-20T00:00:01Z"}`, nil, []string{"json: end: offset 0: is before the answer"}},
		"a FreeSWITCH call that ends before its start": {`{"variables":{"uuid":"u","start_epoch":"1795253655","end_epoch":"1795253654"}}`, nil, []string{"freeswitch: end: offset 0: is before the start"}},
		"an Asterisk call that ends before its start": {
			strings.Replace(strings.SplitAfter(fixture(t, "asterisk.csv"), "\n")[0], "2026-11-20 09:35:12", "2026-11-20 09:34:10", 1), nil, []string{"asterisk: end: offset 0: is before the start"},
		},
		"a fractional duration":       {`{"id":"a","start":"2026-11-20T00:00:00Z","duration":1.5}`, nil, []string{"json: duration: offset 0: must be a whole number of seconds"}},
		"a duration with a plus sign": {`{"id":"a","start":"2026-11-20T00:00:00Z","duration":"+5"}`, nil, []string{"json: duration: offset 0: must be a whole number of seconds"}},
		"an Asterisk duration with a plus sign": {
			strings.Replace(strings.SplitAfter(fixture(t, "asterisk.csv"), "\n")[0], ",57,52,", ",+57,52,", 1), nil, []string{"asterisk: duration: offset 0: must be a whole number of seconds"},
		},
		"a phone number that is an object": {`{"id":"a","start":"2026-11-20T00:00:00Z","from":{}}`, nil, []string{"json: from: offset 0: must be a string"}},
		"a phone number that is too long":  {`{"id":"a","start":"2026-11-20T00:00:00Z","to":"` + strings.Repeat("1", 256) + `"}`, nil, []string{"json: to: offset 0: is longer than 255 bytes"}},
		"an empty body":                    {" \n", nil, []string{"cdr: body: offset 0: is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			calls, _, errs := Parse([]byte(tc.body))
			var got []string
			for _, c := range calls {
				line := formatCall(c)
				if c.ID == c.Key && len(c.ID) == 32 { // the ID is a digest
					line = "7c41d2" + line[32:]
				}
				got = append(got, line)
			}
			relaytest.Equal(t, "the calls", got, tc.want)
			relaytest.Equal(t, "the errors", errorTexts(errs), tc.errs)
		})
	}
}

func TestUnusedFieldsAreNoted(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want decoders.Notes
	}{
		"a FreeSWITCH duration that is not a number": {`{"variables":{"uuid":"u","start_epoch":"1795253655","end_epoch":"1795253660","duration":"5 s"}}`,
			decoders.Notes{`freeswitch: duration: offset 0: "5 s" is not a whole number; it is computed from the times`}},
		"a FreeSWITCH time that is not a number": {`{"variables":{"uuid":"u","start_epoch":"1795253655","answer_epoch":"never"}}`,
			decoders.Notes{`freeswitch: answer_epoch: offset 0: "never" is not a whole number; the callflow's time is used`}},
		"an unknown field":  {`{"id":"a","start":"2026-11-20T00:00:00Z","bill_sec":5}`, decoders.Notes{"json: bill_sec: offset 0: unknown field ignored"}},
		"only known fields": {`{"id":"a","start":"2026-11-20T00:00:00Z","billsec":5}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			calls, notes, errs := Parse([]byte(tc.body))
			relaytest.Equal(t, "the number of calls and errors", []int{len(calls), len(errs)}, []int{1, 0})
			relaytest.Equal(t, "the notes", notes, tc.want)
		})
	}
	uses, notes, errs := ParseUsage([]byte(`{"id":"a","ICCID":"89","start_time":"2026-11-20T00:00:00Z","type":"data","byte":5}`))
	relaytest.Equal(t, "the number of usage records and errors", []int{len(uses), len(errs)}, []int{1, 0})
	relaytest.Equal(t, "the notes of a usage record", notes, decoders.Notes{"json: byte: offset 0: unknown field ignored"})
}

// errorTexts returns the texts of errors.
func errorTexts(errs []error) (list []string) {
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
	relaytest.Equal(t, "the call ID of another channel's record", calls[2].ID, calls[0].ID)
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
			t.Errorf("Source(%.40q) = %s, want %s", body, got, want)
		}
	}
}

func TestTheNumberOfErrorsIsLimited(t *testing.T) {
	if calls, _, errs := Parse([]byte(strings.Repeat("{}\n", 1000))); len(calls) != 0 || len(errs) != maxErrors {
		t.Errorf("%d calls and %d errors, want 0 and %d", len(calls), len(errs), maxErrors)
	}
}

// TestTheParserStopsAfterTooManyErrors would take hours if the parser read the whole body.
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
		if len(calls) == 0 && len(errs) == 0 && len(unwrapForm(body)) > 0 && !strings.HasPrefix(string(unwrapForm(body)), "[") {
			t.Error("neither records nor errors")
		}
		for _, c := range calls {
			if c.ID == "" || c.Key == "" || c.Start.Year() < 1970 || c.Duration < 0 || len(c.From) > maxText {
				t.Errorf("the record %q with key %q is out of bounds: start %s, %d seconds", c.ID, c.Key, c.Start, c.Duration)
			}
		}
	})
}
