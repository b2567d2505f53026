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

// auditEntry is an entry of the audit log without the members that differ each time.
type auditEntry struct {
	Actor, Role, Operation, Target, Outcome string
	Account                                 int64
	Status                                  int
	Request, Before, After                  any
}

func (a auditEntry) String() string {
	changes, _ := json.Marshal([]any{a.Request, a.Before, a.After})
	return fmt.Sprintf("%s (%s) %s %q of %d: %s %d %s", a.Actor, a.Role, a.Operation, a.Target, a.Account, a.Outcome, a.Status, changes)
}

// audit returns the entries of the audit log that a query selects.
func (o *operatorAPI) audit(query string) []auditEntry {
	o.t.Helper()
	body, ok := strings.CutPrefix(o.call("GET /admin/audit?"+query, ""), "200 ")
	var page struct{ Data []auditEntry }
	if !ok {
		o.t.Fatalf("answer = %s, want 200", body)
	}
	relaytest.NoError(o.t, json.Unmarshal([]byte(body), &page))
	return page.Data
}

func TestUsersAreManagedAndRecorded(t *testing.T) {
	o := newOperatorAPI(t)
	_, err := o.db.Accounts.PutAccount(t.Context(), account.Account{Name: "acme"})
	relaytest.NoError(t, err)
	root := o.signIn(user.Admin, 0)
	for _, step := range []struct{ line, body, want string }{
		{"POST /admin/users", `{"name":"Anna","role":"viewer","password":"correct horse battery"}`, `201 {"data":{"name":"anna","role":"viewer","account":null,"provider":"password","disabled":false,`},
		{"POST /admin/users", `{"name":"anna","role":"viewer","password":"correct horse battery"}`, `409 {"message":"A user named anna already exists."}`},
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
		answertest.HasPrefix(t, step.line+" "+step.body, got, step.want)
		answertest.NotContains(t, step.line+" "+step.body, got, "argon2")
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
		t.Fatalf("entries = %d, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i, e := range got {
		answertest.Contains(t, fmt.Sprint("entry ", i), e, "admin-1 (admin) "+want[i])
		answertest.NotContains(t, fmt.Sprint("entry ", i), e, "horse", "another password", "argon2")
	}
	answertest.Contains(t, "the change", got[3], `{"password":"***","role":"operator"}`, `"role":"viewer"}`)
}

func TestTheAuditLogHasTheChanges(t *testing.T) {
	o := newOperatorAPI(t)
	put := func(query, body string) {
		t.Helper()
		o.now = o.now.Add(time.Second)
		if got := o.call("PUT /admin/inventory"+query, body); !strings.HasPrefix(got, "200 ") {
			t.Fatalf("answer = %s, want 200", got)
		}
	}
	put("", `{"accounts":[{"name":"acme","callback_url":"https://a.example/x?key=1","tokens":[{"token":"acme-token-0123456"}]}]}`)
	put("?dry_run=true", `{"accounts":[{"name":"acme","callback_url":"https://b.example/x"}]}`)
	put("", `{"accounts":[{"name":"acme","callback_url":"https://b.example/x?key=2"}]}`)
	entries := o.audit("operation=putInventory&outcome=done")
	if len(entries) != 3 {
		t.Fatalf("entries = %d, want 3", len(entries))
	}
	changeText, firstText := entries[0].String(), entries[2].String()
	answertest.Contains(t, "the change", changeText, `admin token (admin) putInventory "default" of 0: done 200`,
		`"callback_url":"https://a.example/x?key=***"`, `"callback_url":"https://b.example/x?key=***"`)
	answertest.NotContains(t, "the change", changeText, "tokens")
	answertest.NotContains(t, "the first document", firstText, "acme-token-0123456")
	answertest.Contains(t, "the first document", firstText, `"name":"acme"`)
	if dryRun := entries[1]; dryRun.Before != nil {
		t.Errorf("changes of a dry run = %s, want none", dryRun)
	}
	root := o.signIn(user.Admin, 0)
	for _, line := range []string{"POST /admin/deliveries/replay", "DELETE /admin/breakers/none", "POST /admin/relays/explain", "GET /admin/events"} {
		root.send(line, map[bool]string{true: `{"state":"dead"}`}[strings.HasSuffix(line, "replay")])
	}
	got := o.audit("limit=2")
	relaytest.Equal(t, "the operation", got[0].Operation, "closeBreaker")
	relaytest.Equal(t, "the target", got[0].Target, "none")
	relaytest.Equal(t, "the previous entry", got[1].String(), `admin-1 (admin) replayDeliveries "" of 0: done 200 [{"state":"dead"},null,{"count":0}]`)
}

func TestAChangeThatCannotBeRecordedIsNotMade(t *testing.T) {
	o := newOperatorAPI(t)
	relaytest.NoError(t, o.db.Close())
	if got := o.call("DELETE /admin/breakers/none", ""); !strings.HasPrefix(got, "50") {
		t.Errorf("answer without the audit log = %s, want 50x", got)
	}
	if got := o.call("GET /admin/session", ""); !strings.HasPrefix(got, `200 {"data":{"name":"admin token","role":"admin"`) {
		t.Errorf("answer to the admin token without the database = %s, want 200", got)
	}
}

func TestAViewerSeesNoTextOfMessages(t *testing.T) {
	const secret = "meet me at noon"
	o := newOperatorAPI(t)
	o.accept(event.SMS, `{"text":"`+secret+`"}`)
	o.accept(event.Uplink, `{"temperature":5}`)
	o.process()
	d := outbox.Delivery{
		ID: "d1", Account: 7, Kind: outbox.KindRelay, Relay: "r", MessageID: "m", State: outbox.Queued, CreatedAt: o.now,
		Request: &outbox.Request{Method: "GET", URL: "https://example.com/in/" + strings.ReplaceAll(secret, " ", "%20")},
	}
	_, err := o.db.Deliveries.Create(t.Context(), []outbox.Delivery{d}, o.now)
	relaytest.NoError(t, err)
	viewer, operator := o.signIn(user.Viewer, 0), o.signIn(user.Operator, 0)
	for _, line := range []string{"GET /admin/events", "GET /admin/events?kind=sms", "GET /admin/deliveries"} {
		_, operatorAnswer := operator.send(line, "")
		status, viewerAnswer := viewer.send(line, "")
		relaytest.Equal(t, line+": the status for a viewer", status, 200)
		answertest.Contains(t, line+" as an operator", strings.ReplaceAll(operatorAnswer, "%20", " "), secret)
		answertest.NotContains(t, line+" as a viewer", strings.ReplaceAll(viewerAnswer, "%20", " "), secret)
		answertest.Contains(t, line+" as a viewer", viewerAnswer, `"hidden":true`)
	}
	status, frames := viewer.send("GET /admin/events?kind=uplink&q=temperature", "")
	relaytest.Equal(t, "the status of frames", status, 200)
	answertest.Contains(t, "the frames", frames, "temperature")
	for _, line := range []string{"GET /admin/events?q=noon", "GET /admin/events?kind=sms&q=noon", "GET /admin/events?kind=receipt&device=noon", "GET /admin/deliveries?q=noon", "GET /admin/deliveries?target=noon"} {
		status, body := viewer.send(line, "")
		relaytest.Equal(t, line+": the status", status, 403)
		answertest.Contains(t, line, body, "may not search the texts of messages")
	}
}

func TestEveryPlaceOfATextIsHidden(t *testing.T) {
	newViews := func() (messageJSON, tracedJSON) {
		d := deliveryJSON{Target: "https://example.com/text?m=***", Attempts: []attemptJSON{{Response: "text", Error: "refused by 10.0.0.1", Reason: "refused"}}}
		return messageJSON{Parts: []partJSON{{Data: "text", Reason: "rejected"}}}, tracedJSON{
			eventJSON:  eventJSON{Kind: event.Receipt, Raw: "text", Notes: []string{"text: unknown field ignored"}},
			Deliveries: []deliveryJSON{d}, Trace: []stepJSON{{Step: "note", Text: "text: unknown field ignored"}, {Text: "delivery d to " + d.Target}},
		}
	}
	app := fiber.New()
	app.Get("/:role", func(c *fiber.Ctx) error {
		c.Locals(principalKey{}, principal{Principal: httpd.Principal{Role: user.Role(c.Params("role"))}})
		m, e := newViews()
		m.hideText(c)
		e.hide(c)
		return c.JSON([]any{m, e})
	})
	for role, want := range map[user.Role]int{user.Viewer: 0, user.Operator: 7, user.Admin: 7, user.Account: 7} {
		_, body, _ := answertest.Send(t, app, answertest.Request("GET", "/"+string(role), ""))
		n := strings.Count(strings.ReplaceAll(body, `"text":`, ""), "text")
		relaytest.Equal(t, fmt.Sprintf("the number of texts that %s sees", role), n, want)
		answertest.Contains(t, "the answer", body, "refused", "rejected")
		relaytest.Equal(t, string(role)+" sees the error", strings.Contains(body, "10.0.0.1"), role != user.Account)
	}
}

func TestTheRoleAccountSeesOneAccount(t *testing.T) {
	o := newOperatorAPI(t)
	var ids []relay.AccountID
	for _, name := range []string{"acme", "globex"} {
		id, err := o.db.Accounts.PutAccount(t.Context(), account.Account{Name: name})
		relaytest.NoError(t, err, o.db.Credit.Set(t.Context(), id, int64(100*id), o.now))
		ids = append(ids, id)
		_, err = o.db.Deliveries.Create(t.Context(), []outbox.Delivery{{ID: name, Account: id, Kind: outbox.KindRelay, State: outbox.Queued, CreatedAt: o.now, Request: &outbox.Request{URL: "https://" + name}}}, o.now)
		relaytest.NoError(t, err)
	}
	session := o.signIn(user.Account, ids[1])
	for _, tc := range []struct{ line, want string }{
		{"GET /admin/deliveries", `"id":"globex"`}, {"GET /admin/deliveries?account=globex", `"id":"globex"`}, {"GET /admin/deliveries?account=2", `"id":"globex"`},
		{"GET /admin/credit", `"balance":200`}, {"GET /admin/messages", `"data":[]`}, {"GET /admin/events", `"data":[]`}, {"GET /admin/rules", `"data":[]`},
		{"GET /admin/alarms", `"data":[]`}, {"GET /admin/breakers", `"data":[]`}, {"GET /admin/session", `"account_name":"globex"`},
	} {
		status, body := session.send(tc.line, "")
		relaytest.Equal(t, tc.line+": the status", status, 200)
		answertest.Contains(t, tc.line, body, tc.want)
		answertest.NotContains(t, tc.line, body, "acme")
	}
	for _, line := range []string{"GET /admin/deliveries", "GET /admin/credit", "GET /admin/messages", "GET /admin/events", "GET /admin/rules", "GET /admin/alarms", "GET /admin/decoders/d1"} {
		for _, name := range []string{"acme", "1", "999", "nobody"} {
			label := line + " of " + name
			status, body := session.send(line+"?account="+name, "")
			relaytest.Equal(t, label+": the status", status, 403)
			answertest.Contains(t, label, body, "may see only its own account")
		}
	}
	for line, body := range map[string]string{"POST /admin/decoders/try": `{"account":1,"codec":"json","frames":[{"hex":"01"}]}`} {
		if status, got := session.send(line, body); status != 403 {
			t.Errorf("answer to %s = %d %s, want 403", line, status, got)
		}
	}
}
