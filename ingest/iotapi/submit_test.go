package iotapi

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestReadingsAreAdded(t *testing.T) {
	a := newAPI(t)
	a.fill()
	const submit = "POST /iot/devices/id1/readings"
	submission := func(body string) string { return "1 /iot/devices/id1/readings aabbcc001122 " + body }
	invalidField := func(field, problem string) string {
		return `422 {"errors":{"` + field + `":["` + problem + `"]},` + invalid + `}`
	}
	required := invalidField("reading", "The reading field is required.")
	for _, tc := range []struct{ name, line, body, want, submitted string }{
		{"bytes", submit, `{"reading":[1,103,0,255]}`, "200", submission(`{"reading":[1,103,0,255]}`)},
		{"a frame with further members", submit, `{"device_id":"id1","reading":[{"values":{"t":1e3},"time":"2026-03-01T12:00:00Z"}],"x":1}`, "200", submission(`{"reading":[{"values":{"t":1e3},"time":"2026-03-01T12:00:00Z"}]}`)},
		{"an array of readings", submit, `{"readings":[[1],{"hex":"02"}]}`, "200", submission(`{"readings":[[1],{"hex":"02"}]}`)},
		{"a reading in the query", submit + "?reading=%5B1,2%5D", "", "200", submission(`{"reading":[1,2]}`)},
		{"the body wins over the query", submit + "?reading=%5B1,2%5D&readings=%5B%5B3%5D%5D", `{"reading":[9]}`, "200", submission(`{"reading":[9],"readings":[[3]]}`)},
		{"100 readings", submit, `{"readings":[` + strings.Repeat("[1],", 99) + `[1]]}`, "200", submission(`{"readings":[` + strings.Repeat("[1],", 99) + `[1]]}`)},
		{"101 readings", submit, `{"readings":[` + strings.Repeat("[1],", 100) + `[1]]}`, invalidField("readings", "The readings may not have more than 100 items."), ""},
		{"no fields", submit, `{}`, required, ""},
		{"null", submit, `{"reading":null}`, required, ""},
		{"an empty array", submit, `{"reading":[]}`, required, ""},
		{"a byte beyond 255", submit, `{"reading":[1,256]}`, invalidField("reading.1", "The reading.1 must be an integer between 0 and 255."), ""},
		{"a byte in a string", submit, `{"reading":["1"]}`, invalidField("reading.0", "The reading.0 must be an integer between 0 and 255."), ""},
		{"a number too large for a float64", submit, `{"reading":{"values":{"t":1e400}}}`, invalidField("reading.values.t", "The reading.values.t must be a number that 64 bits can hold."), ""},
		{"not a number", submit, `{"reading":{"values":{"t":NaN}}}`, `422 {"message":"Invalid JSON."}`, ""},
		{"infinity", submit, `{"reading":{"values":{"t":Infinity}}}`, `422 {"message":"Invalid JSON."}`, ""},
		{"invalid JSON in the query", submit + "?reading=1,2", "", invalidField("reading", "The reading must be an array."), ""},
		{"a JSON array", submit, `[1,2]`, `422 {"message":"Invalid JSON."}`, ""},
		{"invalid JSON", submit, `{"reading":`, `422 {"message":"Invalid JSON."}`, ""},
		{"an unknown device", "POST /iot/devices/nobody/readings", `{"reading":[1]}`, "404", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a.submitted = ""
			got := a.ask(tc.line, "acme", tc.body)
			if tc.want == "200" && strings.HasPrefix(got, `200 {"data":[{"sensor_id":`) {
				got = "200"
			}
			relaytest.Equal(t, "the answer", got, tc.want)
			switch {
			case tc.submitted != "":
				relaytest.Equal(t, "the submission", a.submitted, tc.submitted)
			case tc.want != "200":
				relaytest.Equal(t, "the submission", a.submitted, "")
			}
		})
	}
	if got := a.ask(submit, "globex", `{"reading":[1]}`); got != "404" {
		t.Errorf("another account: got %s, want 404", got)
	}
	if got := a.ask(submit, "acme", `{"reading":[1]}`, "Content-Type", "text/plain"); got != `415 {"message":"Content-Type must be application/json."}` {
		t.Errorf("another content type: got %s, want 415", got)
	}
	a.submitErr = relay.Errorf(relay.KindUnavailable, "the disk is full")
	if got := a.ask(submit, "acme", `{"reading":[1]}`); !strings.HasPrefix(got, "503 ") {
		t.Errorf("with a full journal: got %s, want status 503", got)
	}
}
