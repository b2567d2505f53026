package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/user"
)

// entry is what a test looks at of an audit entry.
type entry struct {
	Actor, Role, Operation, Target, Outcome string
	Account                                 int64
	Status                                  int
	Request, Before, After                  any
}

func (e entry) String() string {
	shown, _ := json.Marshal([]any{e.Request, e.Before, e.After})
	return fmt.Sprintf("%s (%s) %s %q of %d: %s %d %s", e.Actor, e.Role, e.Operation, e.Target, e.Account, e.Outcome, e.Status, shown)
}

func (o *office) audit(query string) (all []entry) {
	o.t.Helper()
	body, ok := strings.CutPrefix(o.ask("GET /admin/audit?"+query, ""), "200 ")
	var page struct{ Data []entry }
	if !ok {
		o.t.Fatal(body)
	}
	relaytest.NoError(o.t, json.Unmarshal([]byte(body), &page))
	return page.Data
}

func TestUsersAreManagedAndRecorded(t *testing.T) {
	o := newOffice(t)
	_, err := o.db.Accounts.PutAccount(t.Context(), account.Account{Name: "acme"})
	relaytest.NoError(t, err)
	root := o.as(user.Admin, 0)
	for _, step := range []struct{ line, body, want string }{
		{"POST /admin/users", `{"name":"Anna","role":"viewer","password":"correct horse battery"}`, `201 {"data":{"name":"anna","role":"viewer","account":null,"provider":"password","disabled":false,`},
		{"POST /admin/users", `{"name":"anna","role":"viewer","password":"correct horse battery"}`, `409 {"message":"There is a user named anna already."}`},
		{"POST /admin/users", `{"name":"carl","role":"account","account":"nobody","password":"correct horse battery"}`, `422 {"errors":{"account":["There is no account named`},
		{"POST /admin/users", `{"name":"carl","role":"account","account":999,"password":"correct horse battery"}`, `422 {"errors":{"account":["There is no account 999."]}`},
		{"POST /admin/users", `{"name":"carl","role":"account","account":"acme","password":"correct horse battery"}`, `201 {"data":{"name":"carl","role":"account","account":1,`},
		{"PATCH /admin/users/anna", `{"role":"operator","password":"another password"}`, `200 {"data":{"name":"anna","role":"operator",`},
		{"PATCH /admin/users/anna", `{"colour":"red"}`, `422 {"errors":{"colour":["This field is unknown."]}`},
		{"PATCH /admin/users/nobody", `{"role":"operator"}`, `404 {"message":"Not found."}`},
		{"GET /admin/users/carl", "", `200 {"data":{"name":"carl","role":"account","account":1,`},
		{"DELETE /admin/users/carl", "", `204`},
	} {
		status, body := root.send(step.line, step.body)
		got := strings.TrimSpace(fmt.Sprint(status, " ", body))
		answertest.Begins(t, step.line+" "+step.body, got, step.want)
		answertest.Lacks(t, step.line+" "+step.body, got, "argon2")
	}
	var got []string
	for _, e := range o.audit("actor=admin-1") {
		got = append(got, e.String())
	}
	want := []string{
		`removeUser "carl" of 1: done 204`, `changeUser "nobody" of 0: refused 404`, `changeUser "anna" of 0: refused 422`, `changeUser "anna" of 0: done 200`,
		`addUser "carl" of 1: done 201`, `addUser "" of 0: refused 422`, `addUser "" of 0: refused 422`, `addUser "" of 0: refused 409`, `addUser "anna" of 0: done 201`,
	}
	if len(got) != len(want) {
		t.Fatalf("%d entries:\n%s", len(got), strings.Join(got, "\n"))
	}
	for i, e := range got {
		answertest.Contains(t, fmt.Sprint("entry ", i), e, "admin-1 (admin) "+want[i])
		answertest.Lacks(t, fmt.Sprint("entry ", i), e, "horse", "another password", "argon2")
	}
	answertest.Contains(t, "the change", got[3], `{"password":"***","role":"operator"}`, `"role":"viewer"}`)
}

func TestTheLogSaysWhatChanged(t *testing.T) {
	o := newOffice(t)
	put := func(query, body string) {
		t.Helper()
		o.now = o.now.Add(time.Second)
		if got := o.ask("PUT /admin/inventory"+query, body); !strings.HasPrefix(got, "200 ") {
			t.Fatal(got)
		}
	}
	put("", `{"accounts":[{"name":"acme","callback_url":"https://a.example/x?key=1","tokens":[{"token":"acme-token-0123456"}]}]}`)
	put("?dry_run=true", `{"accounts":[{"name":"acme","callback_url":"https://b.example/x"}]}`)
	put("", `{"accounts":[{"name":"acme","callback_url":"https://b.example/x?key=2"}]}`)
	all := o.audit("operation=putInventory&outcome=done")
	if len(all) != 3 {
		t.Fatalf("%d entries", len(all))
	}
	changed, first := all[0].String(), all[2].String()
	answertest.Contains(t, "the change", changed, `admin token (admin) putInventory "default" of 0: done 200`,
		`"callback_url":"https://a.example/x?key=***"`, `"callback_url":"https://b.example/x?key=***"`)
	answertest.Lacks(t, "the change", changed, "tokens")
	answertest.Lacks(t, "the first document", first, "acme-token-0123456")
	answertest.Contains(t, "the first document", first, `"name":"acme"`)
	if dry := all[1]; dry.Before != nil {
		t.Errorf("a dry run changed: %s", dry)
	}
	root := o.as(user.Admin, 0)
	for _, line := range []string{"POST /admin/deliveries/replay", "DELETE /admin/breakers/none", "POST /admin/relays/explain", "GET /admin/events"} {
		root.send(line, map[bool]string{true: `{"state":"dead"}`}[strings.HasSuffix(line, "replay")])
	}
	got := o.audit("limit=2")
	relaytest.Equal(t, "the operation", got[0].Operation, "closeBreaker")
	relaytest.Equal(t, "the target", got[0].Target, "none")
	relaytest.Equal(t, "the entry before", got[1].String(), `admin-1 (admin) replayDeliveries "" of 0: done 200 [{"state":"dead"},null,{"count":0}]`)
}

func TestAChangeThatCannotBeRecordedIsNotMade(t *testing.T) {
	o := newOffice(t)
	relaytest.NoError(t, o.db.Close())
	if got := o.ask("DELETE /admin/breakers/none", ""); !strings.HasPrefix(got, "50") {
		t.Errorf("without the audit log: %s", got)
	}
	if got := o.ask("GET /admin/session", ""); !strings.HasPrefix(got, `200 {"data":{"name":"admin token","role":"admin"`) {
		t.Errorf("the admin token without the database: %s", got)
	}
}

func TestAViewerSeesNoTextOfMessages(t *testing.T) {
	const secret = "meet me at noon"
	o := newOffice(t)
	o.accept(event.SMS, `{"text":"`+secret+`"}`)
	o.accept(event.Uplink, `{"temperature":5}`)
	o.process()
	d := outbox.Delivery{
		ID: "d1", Account: 7, Kind: outbox.KindRelay, Relay: "r", MessageID: "m", State: outbox.Queued, CreatedAt: o.now,
		Request: &outbox.Request{Method: "GET", URL: "https://example.com/in/" + strings.ReplaceAll(secret, " ", "%20")},
	}
	_, err := o.db.Deliveries.Create(t.Context(), []outbox.Delivery{d}, o.now)
	relaytest.NoError(t, err)
	viewer, operator := o.as(user.Viewer, 0), o.as(user.Operator, 0)
	for _, line := range []string{"GET /admin/events", "GET /admin/events?kind=sms", "GET /admin/deliveries"} {
		_, all := operator.send(line, "")
		status, some := viewer.send(line, "")
		relaytest.Equal(t, line+": the status for a viewer", status, 200)
		answertest.Contains(t, line+" as an operator", strings.ReplaceAll(all, "%20", " "), secret)
		answertest.Lacks(t, line+" as a viewer", strings.ReplaceAll(some, "%20", " "), secret)
		answertest.Contains(t, line+" as a viewer", some, `"hidden":true`)
	}
	status, some := viewer.send("GET /admin/events?kind=uplink&q=temperature", "")
	relaytest.Equal(t, "the status of frames", status, 200)
	answertest.Contains(t, "the frames", some, "temperature")
	for _, line := range []string{"GET /admin/events?q=noon", "GET /admin/events?kind=sms&q=noon", "GET /admin/events?kind=receipt&device=noon", "GET /admin/deliveries?q=noon", "GET /admin/deliveries?target=noon"} {
		status, body := viewer.send(line, "")
		relaytest.Equal(t, line+": the status", status, 403)
		answertest.Contains(t, line, body, "may not search the texts of messages")
	}
}

func TestEveryPlaceOfATextIsHidden(t *testing.T) {
	fields := func() (messageJSON, tracedJSON) {
		d := deliveryJSON{Target: "https://example.com/text?m=***", Attempts: []attemptJSON{{Response: "text", Error: "refused by 10.0.0.1", Reason: "refused"}}}
		return messageJSON{Parts: []partJSON{{Data: "text", Reason: "rejected"}}}, tracedJSON{
			eventJSON:  eventJSON{Kind: event.Receipt, Raw: "text", Notes: []string{"text: is not known and is not used"}},
			Deliveries: []deliveryJSON{d}, Trace: []stepJSON{{Step: "note", Text: "text: is not known and is not used"}, {Text: "delivery d to " + d.Target}},
		}
	}
	app := fiber.New()
	app.Get("/:role", func(c *fiber.Ctx) error {
		c.Locals(principalKey{}, principal{Principal: httpd.Principal{Role: user.Role(c.Params("role"))}})
		m, e := fields()
		m.hideText(c)
		e.hide(c)
		return c.JSON([]any{m, e})
	})
	for role, shown := range map[user.Role]int{user.Viewer: 0, user.Operator: 7, user.Admin: 7, user.Account: 7} {
		_, body, _ := answertest.Ask(t, app, answertest.Request("GET", "/"+string(role), ""))
		n := strings.Count(strings.ReplaceAll(body, `"text":`, ""), "text")
		relaytest.Equal(t, fmt.Sprintf("the number of texts that %s sees", role), n, shown)
		answertest.Contains(t, "the answer", body, "refused", "rejected")
		relaytest.Equal(t, string(role)+" sees the error", strings.Contains(body, "10.0.0.1"), role != user.Account)
	}
}

func TestTheRoleAccountSeesOneAccount(t *testing.T) {
	o := newOffice(t)
	var ids []relay.AccountID
	for _, name := range []string{"acme", "globex"} {
		id, err := o.db.Accounts.PutAccount(t.Context(), account.Account{Name: name})
		relaytest.NoError(t, err, o.db.Credit.Set(t.Context(), id, int64(100*id), o.now))
		ids = append(ids, id)
		_, err = o.db.Deliveries.Create(t.Context(), []outbox.Delivery{{ID: name, Account: id, Kind: outbox.KindRelay, State: outbox.Queued, CreatedAt: o.now, Request: &outbox.Request{URL: "https://" + name}}}, o.now)
		relaytest.NoError(t, err)
	}
	v := o.as(user.Account, ids[1])
	for _, tc := range []struct{ line, has string }{
		{"GET /admin/deliveries", `"id":"globex"`}, {"GET /admin/deliveries?account=globex", `"id":"globex"`}, {"GET /admin/deliveries?account=2", `"id":"globex"`},
		{"GET /admin/credit", `"balance":200`}, {"GET /admin/messages", `"data":[]`}, {"GET /admin/events", `"data":[]`}, {"GET /admin/rules", `"data":[]`},
		{"GET /admin/alarms", `"data":[]`}, {"GET /admin/breakers", `"data":[]`}, {"GET /admin/session", `"account_name":"globex"`},
	} {
		status, body := v.send(tc.line, "")
		relaytest.Equal(t, tc.line+": the status", status, 200)
		answertest.Contains(t, tc.line, body, tc.has)
		answertest.Lacks(t, tc.line, body, "acme")
	}
	for _, line := range []string{"GET /admin/deliveries", "GET /admin/credit", "GET /admin/messages", "GET /admin/events", "GET /admin/rules", "GET /admin/alarms", "GET /admin/decoders/d1"} {
		for _, other := range []string{"acme", "1", "999", "nobody"} {
			what := line + " of " + other
			status, body := v.send(line+"?account="+other, "")
			relaytest.Equal(t, what+": the status", status, 403)
			answertest.Contains(t, what, body, "sees its own account only")
		}
	}
	for line, body := range map[string]string{"POST /admin/decoders/try": `{"account":1,"codec":"json","frames":[{"hex":"01"}]}`} {
		if status, got := v.send(line, body); status != 403 {
			t.Errorf("%s: %d %s", line, status, got)
		}
	}
}
