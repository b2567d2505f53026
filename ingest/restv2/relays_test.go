package restv2

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/relaytest"
)

func newAPIWithRelays(t *testing.T) *api {
	t.Helper()
	return newAPI(t,
		relayTo(1, inbound.Geographic, "g1", "4478000", inbound.HTTPGet, "https://example.com/in?m=%m&o=%o"),
		relayTo(1, inbound.Geographic, "g2", "4479", inbound.BlackHole),
		relayTo(1, inbound.VirtualNumber, "v1", "447860000001", inbound.Inactive),
		relayTo(2, inbound.Geographic, "g1", "33", inbound.BlackHole),
	)
}

const (
	updated = `"updated_at":{"date":"2026-11-20 09:34:15.000000","timezone_type":3,"timezone":"UTC"}`
	g1      = `{"id":"g1","prefix":"4478000","action":{"name":"http_get","description":"Forward messages to URLs with HTTP GET",` +
		`"parameters":["https://example.com/in?m=%m&o=%o"],"prefix":"4478000"},` + updated + `}`
	g2 = `{"id":"g2","prefix":"4479","action":{"name":"black_hole","description":"Discard messages","parameters":[],"prefix":"4479"},` + updated + `}`
	v1 = `{"id":"v1","number":"447860000001","action":{"name":"inactive","description":"Discard messages","parameters":[],"number":"447860000001"},` + updated + `}`
)

// meta returns the meta of one page of a list.
func meta(total, count, perPage, page, pages int, links string) string {
	return fmt.Sprintf(`"meta":{"pagination":{"total":%d,"count":%d,"per_page":%d,"current_page":%d,"total_pages":%d,"links":[%s]}}`,
		total, count, perPage, page, pages, links)
}

func TestActionsAreListed(t *testing.T) {
	a := newAPI(t)
	a.expect("acme", "GET", "/v2/sms-relay/geo/actions", "", 200, `{"data":[`+
		`{"name":"black_hole","description":"Discard messages"},`+
		`{"name":"http_post","description":"Forward messages to URLs with HTTP POST"},`+
		`{"name":"http_get","description":"Forward messages to URLs with HTTP GET"},`+
		`{"name":"email","description":"Forward messages to e-mail addresses"}],`+meta(4, 4, 50, 1, 1, "")+`}`)
	_, body := a.ask("acme", "GET", "/v2/sms-relay/vmn/actions", "")
	previous := -1
	for _, name := range []string{"inactive", "http_get", "http_post", "email", "dialogue_post", "dialogue_get", "ms_outlook", "desktopsms", "inbound_gw"} {
		index := strings.Index(body, `"name":"`+name+`"`)
		if index <= previous {
			t.Errorf("%s is missing or in the wrong order: %s", name, body)
		}
		previous = index
	}
	a.expect("acme", "GET", "/v2/sms-relay/geo/actions?per_page=x", "", 422, `{"message":"The per_page must be a number from 1 to 500.","errors":"per_page"}`)
	a.expect("acme", "GET", "/v2/sms-relay/vmn/actions?page=0", "", 422, `{"message":"The page must be a number from 1 to 1000000000.","errors":"page"}`)
}

func TestRelaysAreListedAndRead(t *testing.T) {
	a := newAPIWithRelays(t)
	a.expect("acme", "GET", "/v2/sms-relay/geo", "", 200, `{"data":[`+g1+`,`+g2+`],`+meta(2, 2, 50, 1, 1, "")+`}`)
	a.expect("acme", "GET", "/v2/sms-relay/geo?prefix=4478*", "", 200, `{"data":[`+g1+`],`+meta(1, 1, 50, 1, 1, "")+`}`)
	a.expect("acme", "GET", "/v2/sms-relay/geo?prefix=4479", "", 200, `{"data":[`+g2+`],`+meta(1, 1, 50, 1, 1, "")+`}`)
	a.expect("acme", "GET", "/v2/sms-relay/geo?prefix=447", "", 200, `{"data":[],`+meta(0, 0, 50, 1, 1, "")+`}`)
	a.expect("acme", "GET", "/v2/sms-relay/geo?per_page=1", "", 200, `{"data":[`+g1+`],`+
		meta(2, 1, 1, 1, 2, `{"rel":"next","url":"/v2/sms-relay/geo?page=2&per_page=1"}`)+`}`)
	a.expect("acme", "GET", "/v2/sms-relay/geo?per_page=1&page=2", "", 200, `{"data":[`+g2+`],`+
		meta(2, 1, 1, 2, 2, `{"rel":"previous","url":"/v2/sms-relay/geo?page=1&per_page=1"}`)+`}`)
	a.expect("acme", "GET", "/v2/sms-relay/geo?page=9", "", 200, `{"data":[],`+
		meta(2, 0, 50, 9, 1, `{"rel":"previous","url":"/v2/sms-relay/geo?page=1"}`)+`}`)
	a.expect("acme", "GET", "/v2/sms-relay/vmn?number=*0001", "", 200, `{"data":[`+v1+`],`+meta(1, 1, 50, 1, 1, "")+`}`)
	a.expect("acme", "GET", "/v2/sms-relay/geo?page=0&per_page=501", "", 422,
		`{"message":"The page must be a number from 1 to 1000000000. The per_page must be a number from 1 to 500.","errors":"page, per_page"}`)
	a.expect("acme", "GET", "/v2/sms-relay/vmn?numbers=44*", "", 422,
		`{"message":"This parameter is unknown: the operation takes number, page, per_page.","errors":"numbers"}`)
	a.expect("acme", "GET", "/v2/sip/trunk/source-ips?page=1", "", 422, `{"message":"This parameter is unknown: the operation takes no parameters.","errors":"page"}`)
	a.expect("acme", "GET", "/v2/sms-relay/vmn?per_page=-1", "", 422, `{"message":"The per_page must be a number from 1 to 500.","errors":"per_page"}`)

	a.expect("acme", "GET", "/v2/sms-relay/geo/g1", "", 200, `{"data":`+g1+`}`)
	a.expect("acme", "GET", "/v2/sms-relay/vmn/v1", "", 200, `{"data":`+v1+`}`)
	for _, target := range []string{"/v2/sms-relay/geo/g2", "/v2/sms-relay/vmn/v1", "/v2/sms-relay/vmn/v1/inbox"} {
		a.expect("globex", "GET", target, "", 404, `{"message":"Not found."}`)
	}
	a.expect("globex", "DELETE", "/v2/sms-relay/vmn/v1/inbox/m", "", 404, `{"message":"Not found."}`)
}

func TestPatch(t *testing.T) {
	a := newAPIWithRelays(t)
	const geo, vmn = "/v2/sms-relay/geo/g2", "/v2/sms-relay/vmn/v1"
	for name, tc := range map[string]struct {
		target, body   string
		status         int
		errors, phrase string // parts of the answer
	}{
		"no URL":                             {geo, `{"action":"http_get"}`, 422, "parameters", "The parameters field is required when action is http_get."},
		"an empty list":                      {geo, `{"action":"email","parameters":[]}`, 422, "parameters", "required when action is email"},
		"no action":                          {geo, `{"parameters":["https://a/"]}`, 422, "action", "The action field is required."},
		"a null":                             {vmn, `{"action":null}`, 422, "action", "required"},
		"an empty action":                    {vmn, `{"action":""}`, 422, "action", "required"},
		"an unknown action":                  {geo, `{"action":"fax","parameters":["1"]}`, 422, "action", "must be one of"},
		"an action of the other kind":        {geo, `{"action":"inactive"}`, 422, "action", "must be one of"},
		"two wrong types":                    {geo, `{"action":1,"parameters":"x","z":1}`, 422, "action", "must be a string"},
		"both wrong":                         {geo, `{"action":1,"parameters":{}}`, 422, "action, parameters", "must be an array"},
		"numbers as parameters":              {geo, `{"action":"email","parameters":[1]}`, 422, "parameters", "an array of strings"},
		"a relative URL":                     {geo, `{"action":"http_get","parameters":["https://a/","b"]}`, 422, "parameters", "parameters.1"},
		"a private address":                  {vmn, `{"action":"http_get","parameters":["http://10.0.0.1/"]}`, 422, "parameters", "private"},
		"an invalid e-mail address":          {vmn, `{"action":"ms_outlook","parameters":["a"]}`, 422, "parameters", "not an e-mail address"},
		"mvno without a SIM":                 {geo, `{"action":"mvno"}`, 422, "action", "needs a relay that names a SIM"},
		"invalid JSON":                       {geo, `{`, 422, "body", "Invalid JSON."},
		"two JSON values":                    {geo, `{} {}`, 422, "body", "Invalid JSON."},
		"invalid UTF-8":                      {geo, "{\"a\":\"\xff\"}", 422, "body", "The body is not valid UTF-8."},
		"a high surrogate alone":             {geo, `{"a":"\ud83d"}`, 422, "body", "The body is not valid UTF-8."},
		"a low surrogate alone":              {geo, `{"a":"x\uDE00"}`, 422, "body", "The body is not valid UTF-8."},
		"a surrogate pair in reverse order":  {geo, `{"a":"\ude00\ud83d"}`, 422, "body", "The body is not valid UTF-8."},
		"a truncated escape":                 {geo, `{"a":"\ud8`, 422, "body", "Invalid JSON."},
		"a list":                             {vmn, `[]`, 422, "body", "must be an object"},
		"an unknown relay":                   {"/v2/sms-relay/geo/g9", `{"action":"black_hole"}`, 404, "", "Not found."},
		"an unknown number":                  {"/v2/sms-relay/vmn/g1", `{"action":"inactive"}`, 404, "", "Not found."},
		"an unknown relay with a bad action": {"/v2/sms-relay/vmn/g1", `{"action":"fax"}`, 404, "", "Not found."},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := a.ask("acme", "PATCH", tc.target, tc.body)
			relaytest.Equal(t, "the status", status, tc.status)
			answertest.Contains(t, "the answer", body, tc.phrase)
			if tc.errors != "" {
				answertest.Contains(t, "the answer", body, `"errors":"`+tc.errors)
			}
		})
	}
	a.expect("acme", "GET", geo, "", 200, `{"data":`+g2+`}`)
	a.expect("acme", "GET", vmn, "", 200, `{"data":`+v1+`}`)
}

func TestPatchChangesTheAction(t *testing.T) {
	a := newAPIWithRelays(t)
	relayJSON := func(action, description, parameters string) string {
		return `{"data":{"id":"g2","prefix":"4479","action":{"name":"` + action + `","description":"` + description + `","parameters":` + parameters +
			`,"prefix":"4479"},` + updated + `}}`
	}
	const target = "/v2/sms-relay/geo/g2"
	want := relayJSON("http_post", "Forward messages to URLs with HTTP POST", `["https://a/?<&>","https://b/"]`)
	a.expect("acme", "PATCH", target, `{"action":"http_post","parameters":["https://a/?<&>","https://b/"],"unknown":1}`, 200, want)
	a.expect("acme", "GET", target, "", 200, want)
	a.expect("acme", "PATCH", target+"?action=email&parameters=a@example.com&parameters[]=b@example.com", "", 200,
		relayJSON("email", "Forward messages to e-mail addresses", `["a@example.com","b@example.com"]`))
	a.expect("acme", "PATCH", target+"?action=email&parameters[]=a@example.com&parameters[]=b@example.com", `{"action":"black_hole"}`, 200,
		relayJSON("black_hole", "Discard messages", `[]`))
	status, body := a.ask("acme", "PATCH", "/v2/sms-relay/vmn/v1", `{"action":"desktopsms","parameters":["front desk"]}`)
	relaytest.Equal(t, "the status", status, 200)
	answertest.Contains(t, "the answer", body, `"parameters":["front desk"]`)
	found, err := a.db.Inbound.Candidates(t.Context(), []string{"447860000001"})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the action that the next message finds", found[0][0].Action.Name, inbound.DesktopSMS)
}

func TestTheFilterOfARelay(t *testing.T) {
	a := newAPIWithRelays(t)
	const target = "/v2/sms-relay/vmn/v1"
	relayJSON := func(filter string) string {
		return `{"data":{"id":"v1","number":"447860000001","action":{"name":"inactive","description":"Discard messages","parameters":[],"number":"447860000001"},` + filter + updated + `}}`
	}
	const filterJSON = `"filter":"text contains \"STOP\"",`
	a.expect("acme", "PATCH", target, `{"action":"inactive","filter":"text contains \"STOP\""}`, 200, relayJSON(filterJSON))
	a.expect("acme", "PATCH", target, `{"action":"inactive"}`, 200, relayJSON(filterJSON))
	a.expect("acme", "PATCH", target, `{"action":"inactive","filter":"text contains"}`, 422,
		`{"message":"The filter is not valid: line 1, column 13: unexpected end of the expression.","errors":"filter"}`)
	a.expect("acme", "PATCH", target, `{"action":"inactive","filter":7}`, 422, `{"message":"The filter must be a string.","errors":"filter"}`)
	a.expect("acme", "PATCH", target, `{"action":"inactive","filter":"all([1], # > 0)"}`, 422,
		`{"message":"The filter is not valid: a condition has no predicates and no let.","errors":"filter"}`)
	a.expect("acme", "GET", target, "", 200, relayJSON(filterJSON))
	a.expect("acme", "PATCH", target+"?action=inactive&filter=weekday+%3C+6", "", 200, relayJSON(`"filter":"weekday < 6",`))
	a.expect("acme", "PATCH", target, `{"action":"inactive","filter":null}`, 200, relayJSON(""))
}

func TestUnauthorizedAndUnreadableRequestsAreRefused(t *testing.T) {
	a := newAPIWithRelays(t)
	relays := []string{"/v2/sms-relay/geo", "/v2/sms-relay/vmn"}
	var operations []string
	for _, path := range relays {
		operations = append(operations, "GET "+path+"/actions", "GET "+path, "GET "+path+"/x", "PATCH "+path+"/x")
	}
	operations = append(operations, "GET /v2/sms-relay/vmn/v1/inbox", "DELETE /v2/sms-relay/vmn/v1/inbox/m")
	for _, operation := range operations {
		method, path, _ := strings.Cut(operation, " ")
		a.expect("", method, path, "", 401, `{"message":"Unauthenticated."}`)
		a.expect("wrong", method, path, "", 401, `{"message":"Unauthenticated."}`)
		a.expect("iot", method, path, "", 403, `{"message":"This action is unauthorised."}`)
	}
	for _, path := range []string{"/v2/sms-relay/geo/g2", "/v2/sms-relay/vmn/v1"} {
		for _, kind := range []string{"text/plain", "", "application/jsonx", "application/x-www-form-urlencoded"} {
			status, body := a.ask("acme", "PATCH", path, `{"action":"black_hole"}`, "Content-Type", kind)
			relaytest.Equal(t, kind+": the status", status, 415)
			relaytest.Equal(t, kind+": the answer", body, `{"message":"Content-Type must be application/json."}`)
		}
		if status, _ := a.ask("acme", "PATCH", path, `{"action":"`, "Content-Type", "application/json; charset=utf-8"); status != 422 {
			t.Errorf("with a charset: %d, want 422", status)
		}
		if status, body := a.ask("acme", "PATCH", path, strings.Repeat(" ", maxBody+1)); status != 413 {
			t.Errorf("a large body: %d %s, want 413", status, body)
		}
		if status, body := a.ask("acme", "PATCH", path, "not gzip", "Content-Encoding", "gzip"); status != 400 {
			t.Errorf("an invalid gzip body: %d %s, want 400", status, body)
		}
	}
	relaytest.NoError(t, a.db.Inbound.Put(t.Context(), relayTo(2, inbound.Geographic, "g1", "33", inbound.BlackHole)))
	a.expect("globex", "PATCH", "/v2/sms-relay/geo/g1", `{"action":"mvno"}`, 403, `{"message":"This action is unauthorised."}`)
}

func TestTheInboxIsReadAndAcknowledged(t *testing.T) {
	a := newAPI(t, relayTo(1, inbound.VirtualNumber, "v1", "447860000001", inbound.DesktopSMS, "front"))
	receivedAt := clock()
	message := func(id string, m inbound.Message) inbound.InboxMessage {
		m.ID, m.From, m.To, m.ReceivedAt = id, "447700900123", "447860000001", receivedAt
		receivedAt = receivedAt.Add(time.Second)
		return inbound.InboxMessage{Account: 1, Relay: "v1", Labels: []string{"front"}, Message: m}
	}
	relaytest.NoError(t, a.db.Inbound.Keep(t.Context(), []inbound.InboxMessage{
		message("n1-s1", inbound.Message{Text: "hé & <you>", Coding: sms.GSM, Network: "Example", SentAt: clock().Add(-time.Minute)}),
		message("n1-s2", inbound.Message{Data: []byte{0, 255}, Coding: sms.Binary, UDH: []byte{6, 5, 4, 11, 132, 35, 240}, Stat: inbound.Concatenated}),
	}))
	text := `{"id":"n1-s1","source":"447700900123","destination":"447860000001","received":"2026-11-20 09:34:15","sent":"2026-11-20 09:33:15",` +
		`"data":"hé & <you>","code":7,"stat":0,"udh":"","network":"Example","labels":["front"]}`
	binary := `{"id":"n1-s2","source":"447700900123","destination":"447860000001","received":"2026-11-20 09:34:16","sent":null,` +
		`"data":"00ff","code":8,"stat":1,"udh":"0605040b8423f0","network":"","labels":["front"]}`
	const inbox = "/v2/sms-relay/vmn/v1/inbox"
	a.expect("acme", "GET", inbox, "", 200, `{"data":[`+text+`,`+binary+`],`+meta(2, 2, 50, 1, 1, "")+`}`)
	a.expect("acme", "GET", inbox+"?per_page=1&page=2", "", 200, `{"data":[`+binary+`],`+
		meta(2, 1, 1, 2, 2, `{"rel":"previous","url":"/v2/sms-relay/vmn/v1/inbox?page=1&per_page=1"}`)+`}`)
	a.expect("acme", "GET", inbox+"?page=x", "", 422, `{"message":"The page must be a number from 1 to 1000000000.","errors":"page"}`)
	a.expect("globex", "DELETE", inbox+"/n1-s1", "", 404, `{"message":"Not found."}`)
	a.expect("acme", "DELETE", inbox+"/n1-s1", "", 204, "")
	a.expect("acme", "DELETE", inbox+"/n1-s1", "", 404, `{"message":"Not found."}`)
	a.expect("acme", "GET", inbox, "", 200, `{"data":[`+binary+`],`+meta(1, 1, 50, 1, 1, "")+`}`)
}

func TestWithoutTheDatabaseRequestsAreAnswered503(t *testing.T) {
	a := newAPIWithRelays(t)
	a.expect("acme", "GET", "/v2/sms-relay/geo/g1", "", 200, `{"data":`+g1+`}`) // the token is cached
	relaytest.NoError(t, a.db.Close())
	for _, operation := range []string{"GET geo", "GET geo/g1", "PATCH geo/g1", "GET vmn", "GET vmn/v1", "PATCH vmn/v1", "GET vmn/v1/inbox", "DELETE vmn/v1/inbox/m"} {
		method, path, _ := strings.Cut(operation, " ")
		body := ""
		if method == "PATCH" {
			body = `{"action":"email","parameters":["a@example.com"]}`
		}
		a.expect("acme", method, "/v2/sms-relay/"+path, body, 503, `{"message":"Service temporarily unavailable. Please try again later."}`)
	}
}

func TestRelaysAreCreatedAndDeleted(t *testing.T) {
	a := newAPIWithRelays(t)
	create := func(kind, body string) (id string) {
		t.Helper()
		status, answer := a.ask("acme", "POST", "/v2/sms-relay/"+kind, body)
		relaytest.Equal(t, "the status of "+body+": "+answer, status, 201)
		_, tail, _ := strings.Cut(answer, `"id":"`)
		id, _, _ = strings.Cut(tail, `"`)
		return id
	}
	geo := create("geo", `{"prefix":"4477","action":"http_get","parameters":["https://example.com/in?m=%m"],"filter":"text == \"STOP\""}`)
	vmn := create("vmn?number=447860000009&action=inactive", "")
	served := create("geo", `{"prefix":"4476","action":"mvno","iccid":"8944000000000000001"}`)
	_, body := a.ask("acme", "GET", "/v2/sms-relay/geo/"+geo, "")
	answertest.Contains(t, "the relay", body, `"prefix":"4477"`, `"parameters":["https://example.com/in?m=%m"]`, `"filter":"text == \"STOP\""`)
	for _, tc := range []struct{ name, kind, body, want string }{
		{"a prefix of the same account", "geo", `{"prefix":"4478000","action":"black_hole"}`, "The prefix 4478000 belongs to another relay."},
		{"a prefix of another account", "geo", `{"prefix":"33","action":"black_hole"}`, "The prefix 33 belongs to another relay."},
		{"a number within a prefix of another account", "vmn", `{"number":"33123456789","action":"desktopsms","parameters":["x"]}`, "The number 33123456789 belongs to another relay."},
		{"a longer prefix than that of another account", "geo", `{"prefix":"331","action":"black_hole"}`, "The prefix 331 belongs to another relay."},
		{"a prefix that covers another account's", "geo", `{"prefix":"3","action":"black_hole"}`, "The prefix 3 belongs to another relay."},
		{"a SIM of another account", "geo", `{"prefix":"4400","action":"mvno","iccid":"8944000000000000002"}`, "The account has no SIM 8944000000000000002."},
		{"a number of the same account", "vmn", `{"number":"447860000001","action":"inactive"}`, "The number 447860000001 belongs to another relay."},
		{"an invalid prefix", "geo", `{"prefix":"44x","action":"black_hole"}`, "The prefix must be 1 to 15 digits."},
		{"no prefix and no action", "geo", `{}`, "The action field is required. The prefix field is required."},
		{"an unknown action", "vmn", `{"number":"4400","action":"mvno"}`, "action"},
		{"a private URL", "geo", `{"prefix":"4400","action":"http_get","parameters":["https://10.0.0.1/"]}`, "private"},
		{"mvno without a SIM", "geo", `{"prefix":"4400","action":"mvno"}`, "The action mvno needs a relay that names a SIM."},
		{"a filter that does not compile", "geo", `{"prefix":"4400","action":"black_hole","filter":"(("}`, "filter"},
	} {
		status, body := a.ask("acme", "POST", "/v2/sms-relay/"+tc.kind, tc.body)
		relaytest.Equal(t, tc.name+": the status", status, 422)
		answertest.Contains(t, tc.name, body, tc.want)
	}
	a.expect("acme", "DELETE", "/v2/sms-relay/geo/"+geo, "", 204, "")
	a.expect("acme", "DELETE", "/v2/sms-relay/geo/"+served, "", 204, "")
	a.expect("acme", "DELETE", "/v2/sms-relay/vmn/"+vmn, "", 204, "")
	a.expect("acme", "DELETE", "/v2/sms-relay/vmn/"+vmn, "", 404, `{"message":"Not found."}`)
	a.expect("acme", "DELETE", "/v2/sms-relay/geo/v1", "", 404, `{"message":"Not found."}`)
	create("geo", `{"prefix":"4477","action":"black_hole"}`)
}

func TestARelayIsTried(t *testing.T) {
	a := newAPIWithRelays(t)
	a.expect("acme", "POST", "/v2/sms-relay/geo/g1/try", `{"from":"447700900123","text":"hi"}`, 200,
		`{"data":{"state":"done","reason":"","outcome":"geo relay g1","sent":false,"requests":[{"delivery_id":"d1","method":"GET","url":"https://example.com/in?m=%m&o=%o"}]}}`)
	a.expect("acme", "POST", "/v2/sms-relay/vmn/v1/try?from=Shop&text=hi&send=true", "", 200,
		`{"data":{"state":"done","reason":"","outcome":"vmn relay v1","sent":true,"requests":[]}}`)
	relaytest.Equal(t, "the trials", a.trials, []inbound.Trial{{From: "447700900123", Text: "hi"}, {From: "Shop", Text: "hi", Send: true}})
	a.expect("acme", "POST", "/v2/sms-relay/vmn/none/try", `{"from":"1","text":"hi"}`, 404, `{"message":"Not found."}`)
	a.expect("acme", "POST", "/v2/sms-relay/geo/g1/try", `{}`, 422, `{"message":"The from field is required. The text field is required.","errors":"from, text"}`)
}
