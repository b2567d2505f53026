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
	const to = "POST /iot/devices/id1/readings"
	took := func(body string) string { return "1 /iot/devices/id1/readings aabbcc001122 " + body }
	refused := func(field, problem string) string {
		return `422 {"errors":{"` + field + `":["` + problem + `"]},` + invalid + `}`
	}
	required := refused("reading", "The reading field is required.")
	for _, tc := range []struct{ name, line, body, want, took string }{
		{"bytes", to, `{"reading":[1,103,0,255]}`, "200", took(`{"reading":[1,103,0,255]}`)},
		{"a frame, and more members", to, `{"device_id":"id1","reading":[{"values":{"t":1e3},"time":"2026-03-01T12:00:00Z"}],"x":1}`, "200", took(`{"reading":[{"values":{"t":1e3},"time":"2026-03-01T12:00:00Z"}]}`)},
		{"a list", to, `{"readings":[[1],{"hex":"02"}]}`, "200", took(`{"readings":[[1],{"hex":"02"}]}`)},
		{"in the query", to + "?reading=%5B1,2%5D", "", "200", took(`{"reading":[1,2]}`)},
		{"the body wins over the query", to + "?reading=%5B1,2%5D&readings=%5B%5B3%5D%5D", `{"reading":[9]}`, "200", took(`{"reading":[9],"readings":[[3]]}`)},
		{"a hundred", to, `{"readings":[` + strings.Repeat("[1],", 99) + `[1]]}`, "200", ""},
		{"more than a hundred", to, `{"readings":[` + strings.Repeat("[1],", 100) + `[1]]}`, refused("readings", "The readings may not have more than 100 items."), ""},
		{"nothing", to, `{}`, required, ""},
		{"null", to, `{"reading":null}`, required, ""},
		{"an empty array", to, `{"reading":[]}`, required, ""},
		{"a byte beyond 255", to, `{"reading":[1,256]}`, refused("reading.1", "The reading.1 must be an integer between 0 and 255."), ""},
		{"a byte in a string", to, `{"reading":["1"]}`, refused("reading.0", "The reading.0 must be an integer between 0 and 255."), ""},
		{"a number beyond numbers", to, `{"reading":{"values":{"t":1e400}}}`, refused("reading.values.t", "The reading.values.t must be a number that 64 bits can hold."), ""},
		{"not a number", to, `{"reading":{"values":{"t":NaN}}}`, `422 {"message":"Invalid JSON."}`, ""},
		{"infinity", to, `{"reading":{"values":{"t":Infinity}}}`, `422 {"message":"Invalid JSON."}`, ""},
		{"no JSON in the query", to + "?reading=1,2", "", refused("reading", "The reading must be an array."), ""},
		{"a list alone", to, `[1,2]`, `422 {"message":"Invalid JSON."}`, ""},
		{"no JSON", to, `{"reading":`, `422 {"message":"Invalid JSON."}`, ""},
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
			case tc.took != "":
				relaytest.Equal(t, "the frame", a.submitted, tc.took)
			case tc.want != "200":
				relaytest.Equal(t, "the frame", a.submitted, "")
			}
		})
	}
	if got := a.ask(to, "globex", `{"reading":[1]}`); got != "404" {
		t.Errorf("another account: %s", got)
	}
	if got := a.ask(to, "acme", `{"reading":[1]}`, "Content-Type", "text/plain"); got != `415 {"message":"Content-Type must be application/json."}` {
		t.Error(got)
	}
	a.full = relay.Errorf(relay.KindUnavailable, "the disk is full")
	if got := a.ask(to, "acme", `{"reading":[1]}`); !strings.HasPrefix(got, "503 ") {
		t.Errorf("while the journal is full: %s", got)
	}
}
