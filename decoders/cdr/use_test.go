package cdr

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// formatUse formats a usage record as one line.
func formatUse(u Use) string {
	return fmt.Sprintf("%s %s %s %s %d/%d", u.ID, u.ICCID[len(u.ICCID)-2:], u.Start.Format("02T15:04:05.999999"), u.Type, u.Bytes, u.Duration)
}

const validUse = `{"id":"a","iccid":"8944500000000000017","start_time":"2026-11-20T00:00:00Z","type":"data"}`

// useWith returns a valid usage record in which a field has another value.
func useWith(name, value string) string {
	if name == "bytes" || name == "duration" {
		return strings.TrimSuffix(validUse, "}") + `,"` + name + `":` + value + "}"
	}
	_, tail, _ := strings.Cut(validUse, `"`+name+`":`)
	oldValue := tail[:strings.Index(tail[1:], `"`)+2]
	return strings.Replace(validUse, `"`+name+`":`+oldValue, `"`+name+`":`+value, 1)
}

func TestParseUsage(t *testing.T) {
	fixtureUses := []string{
		"u-1 17 20T09:34:15.123456 data 1048576/60", "2 25 20T09:34:15 sms 0/0", "u-3 17 20T09:40:00 voice 0/75",
	}
	const formattedUse = "a 17 20T00:00:00 data 0/0"
	for name, tc := range map[string]struct {
		body string
		want []string
		errs []string
	}{
		"JSON lines":                          {fixture(t, "uses.jsonl"), fixtureUses, nil},
		"CSV":                                 {fixture(t, "uses.csv"), fixtureUses, nil},
		"CSV with a byte order mark":          {"\ufeff" + fixture(t, "uses.csv"), fixtureUses, nil},
		"CSV with CR LF":                      {strings.ReplaceAll(fixture(t, "uses.csv"), "\n", "\r\n"), fixtureUses, nil},
		"an array of records":                 {"[" + validUse + "," + validUse + "]", []string{formattedUse, formattedUse}, nil},
		"an invalid line between valid lines": {validUse + "\n{\"id\":\n" + validUse, []string{formattedUse, formattedUse}, []string{"json: body: offset 91: is not valid JSON"}},
		"another order of columns":            {"type,duration,bytes,id,iccid,start_time\ndata,1,2,a,8944500000000000017,2026-11-20T00:00:00Z", []string{"a 17 20T00:00:00 data 2/1"}, nil},
		"CSV without a header":                {"u-1,8944500000000000017,2026-11-20T09:34:15Z,data,1,1", nil, []string{"csv: header: offset 0: must be id,iccid,start_time,type,bytes,duration"}},
		"a cell that Inert has changed":       {"id,iccid,start_time,type,bytes,duration\n'=x1,8944500000000000017,2026-11-20T00:00:00Z,data,,", []string{"=x1 17 20T00:00:00 data 0/0"}, nil},
		"an extra column":                     {"id,iccid,start_time,type,bytes,duration,cost\n", nil, []string{"csv: header: offset 0: must be id,iccid,start_time,type,bytes,duration"}},
		"a repeated column":                   {"id,iccid,start_time,type,bytes,bytes\n", nil, []string{"csv: header: offset 0: must be id,iccid,start_time,type,bytes,duration"}},
		"a line with too few columns":         {"id,iccid,start_time,type,bytes,duration\na,b\na,8944500000000000017,2026-11-20T00:00:00Z,data,,", []string{formattedUse}, []string{"csv: line: offset 40: has 2 columns instead of 6"}},
		"an unterminated quote":               {"id,iccid,start_time,type,bytes,duration\n\"a,b\n", nil, []string{"csv: line: offset 40: is not valid CSV"}},
		"no id":                               {useWith("id", `""`), nil, []string{"json: id: offset 0: is missing"}},
		"an id that is too long":              {useWith("id", `"`+strings.Repeat("x", 256)+`"`), nil, []string{"json: id: offset 0: is longer than 255 bytes"}},
		"no ICCID":                            {useWith("iccid", "null"), nil, []string{"json: iccid: offset 0: must be 1 to 32 digits or letters"}},
		"an invalid ICCID":                    {useWith("iccid", `"89 44"`), nil, []string{"json: iccid: offset 0: must be 1 to 32 digits or letters"}},
		"a start in the basic form":           {useWith("start_time", `"20261120T0130+0130"`), []string{formattedUse}, nil},
		"a start at 24:00":                    {useWith("start_time", `"2026-11-19T24:00"`), []string{formattedUse}, nil},
		"no start":                            {useWith("start_time", "null"), nil, []string{"json: start_time: offset 0: is missing"}},
		"an invalid start":                    {useWith("start_time", `"yesterday"`), nil, []string{"json: start_time: offset 0: must be a time like 2026-01-31T12:00:00Z"}},
		"a start before 1970":                 {useWith("start_time", `"1066-10-14T00:00:00Z"`), nil, []string{"json: start_time: offset 0: lies outside 1970 to 2200"}},
		"an unknown type":                     {useWith("type", `"DATA"`), nil, []string{"json: type: offset 0: must be data, sms or voice"}},
		"bytes with a plus sign":              {useWith("bytes", `"+5"`), nil, []string{"json: bytes: offset 0: must be a whole number from 0 to 2^40"}},
		"bytes with a plus sign in CSV":       {"id,iccid,start_time,type,bytes,duration\na,8944500000000000017,2026-11-20T00:00:00Z,data,+5,", nil, []string{"csv: bytes: offset 40: must be a whole number from 0 to 2^40"}},
		"negative bytes":                      {useWith("bytes", "-1"), nil, []string{"json: bytes: offset 0: must be a whole number from 0 to 2^40"}},
		"more than 2^40 bytes":                {useWith("bytes", "1099511627777"), nil, []string{"json: bytes: offset 0: must be a whole number from 0 to 2^40"}},
		"a fraction of a byte":                {useWith("bytes", "0.5"), nil, []string{"json: bytes: offset 0: must be a whole number from 0 to 2^40"}},
		"an invalid duration":                 {useWith("duration", `"1m"`), nil, []string{"json: duration: offset 0: must be a whole number of seconds"}},
		"a field that is an object":           {useWith("bytes", "{}"), nil, []string{"json: bytes: offset 0: must be a string"}},
		"a number in an array":                {"[7]", nil, []string{"json: record: offset 0: is not an object"}},
		"an empty body":                       {" \n", nil, []string{"cdr: body: offset 0: is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			uses, _, errs := ParseUsage([]byte(tc.body))
			var got []string
			for _, u := range uses {
				got = append(got, formatUse(u))
			}
			relaytest.Equal(t, "the records", got, tc.want)
			relaytest.Equal(t, "the errors", errorTexts(errs), tc.errs)
		})
	}
}

func TestAtMostTwentyErrorsAreReturned(t *testing.T) {
	for name, tc := range map[string]struct {
		line string
		want int // number of records, including the valid one at the end
	}{
		"incomplete records":    {`{"id":"x"}`, 1},
		"lines of invalid JSON": {`{"id":}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			uses, _, errs := ParseUsage([]byte(strings.Repeat(tc.line+"\n", 30) + validUse))
			if len(uses) != tc.want || len(errs) != maxErrors {
				t.Errorf("%d records and %d errors, want %d and %d", len(uses), len(errs), tc.want, maxErrors)
			}
		})
	}
}

func TestUsageSource(t *testing.T) {
	for body, want := range map[string]string{fixture(t, "uses.jsonl"): "json", fixture(t, "uses.csv"): "csv", "\ufeff [": "json", "": "csv"} {
		if got := UsageSource([]byte(body)); got != want {
			t.Errorf("UsageSource(%.40q) = %s, want %s", body, got, want)
		}
	}
}

func TestInert(t *testing.T) {
	for cell, want := range map[string]string{"=cmd()": "'=cmd()", "+44": "'+44", "-1": "'-1", "@SUM": "'@SUM", "\tx": "'\tx", "a=b": "a=b", "": "", "'=1": "''=1", "''=1": "'''=1", "'a": "'a", "'": "'"} {
		if got := Inert(cell); got != want || restoreFormula(got) != cell {
			t.Errorf("Inert(%q) = %q, want %q; its original is %q", cell, got, want, restoreFormula(got))
		}
	}
	u := Use{ID: "=1", ICCID: "89", Start: time.Date(2026, 1, 2, 3, 4, 5, 120_000_000, time.UTC), Type: "data", Bytes: 7, Duration: 8}
	relaytest.Equal(t, "the row", strings.Join(u.Row(), "|"), "'=1|89|2026-01-02T03:04:05.12Z|data|7|8")
}

// FuzzParseUsage checks that the row of each record is parsed to the same record.
func FuzzParseUsage(f *testing.F) {
	for _, name := range []string{"uses.jsonl", "uses.csv"} {
		f.Add([]byte(fixture(f, name)))
	}
	f.Add([]byte("[" + validUse + "]"))
	f.Add([]byte(useWith("id", `"=x"`) + useWith("id", `"'=x"`)))
	f.Add([]byte("id,iccid,start_time,type,bytes,duration\n\"a\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		uses, _, errs := ParseUsage(body)
		if len(errs) > maxErrors {
			t.Errorf("%d errors", len(errs))
		}
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		_ = w.Write(UseHeader())
		uses = slices.DeleteFunc(uses, func(u Use) bool {
			return strings.Contains(u.ID, "\r") // the CSV reader changes CR in a cell
		})
		for _, u := range uses {
			if u.Bytes < 0 || u.Bytes > maxBytes || u.Duration < 0 || u.Duration > maxSeconds || len(u.ID) > maxText {
				t.Errorf("the record %q is out of bounds: %d bytes, %d seconds", u.ID, u.Bytes, u.Duration)
			}
			_ = w.Write(u.Row())
		}
		w.Flush()
		reparsed, _, errs := ParseUsage(b.Bytes())
		if len(reparsed) != len(uses) || len(errs) > 0 {
			t.Fatalf("%d of %d records are parsed from their rows: %v", len(reparsed), len(uses), errs)
		}
		for i, u := range uses {
			relaytest.Equal(t, "the record parsed from its row", reparsed[i], u)
		}
	})
}
