package restv3

import (
	"io"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/relaytest"
)

const (
	noSIM       = `{"success":false,"message":"SIM not found."}`
	noPool      = `{"success":false,"message":"Invalid pool."}`
	noRecipient = `{"success":false,"message":"Invalid recipient."}`
)

// warningAboveLimit is the error for a warning above the usage limit.
const warningAboveLimit = `"errors":{"monthly_usage_limit_warning":["The monthly usage limit warning must not be above the monthly usage limit."]}`

func TestListsOfSIMs(t *testing.T) {
	a := newAPI(t)
	filter := func(field, operator, value string) string {
		return "&" + url.QueryEscape("filters["+field+"][operator]") + "=" + url.QueryEscape(operator) +
			"&" + url.QueryEscape("filters["+field+"][value]") + "=" + url.QueryEscape(value)
	}
	for _, tc := range []struct {
		name, query, iccids, total string
	}{
		{"all SIMs", "", "12345", `"current_page":1,"last_page":1,"per_page":25,"total":5,"count":5`},
		{"the second of two pages", "per_page=3&page=2", "45", `"current_page":2,"last_page":2,"per_page":3,"total":5,"count":2`},
		{"a page after the last", "per_page=3&page=9", "", `"current_page":9,"last_page":2,"per_page":3,"total":5,"count":0`},
		{"descending order", "order_by=imsi&order_direction=desc&per_page=2", "54", `"total":5`},
		{"one MSISDN", filter("msisdn", "=", "447700900003"), "3", `"total":1`},
		{"without an operator", "filters[iccid][value]=" + iccid("2"), "2", `"total":1`},
		{"all but one IMSI", filter("imsi", "!=", "234150000000002"), "1345", `"total":4`},
		{"a prefix", filter("iccid", "like", "8944%"), "12345", `"total":5`},
		{"like without a wildcard", filter("iccid", "like", iccid("1")), "1", `"total":1`},
		{"starts_with", filter("msisdn", "starts_with", "44770090000"), "12345", `"total":5`},
		{"another account's MSISDN", filter("msisdn", "=", "447700900006"), "", `"last_page":1,"per_page":25,"total":0,"count":0`},
		{"an operator alone", "filters[iccid][operator]=%3D", "12345", `"total":5`},
		{"an empty value", filter("iccid", "!=", ""), "12345", `"total":5`},
		{"a filter without a value, and another", "filters[iccid][operator]=like" + filter("msisdn", "=", "447700900003"), "3", `"total":1`},
		{"two filters", filter("iccid", "starts_with", "8944") + filter("msisdn", "=", "447700900004"), "4", `"total":1`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, got := a.ask("acme", "GET", "/v3/mno?"+strings.TrimPrefix(tc.query, "&"), "")
			var iccids string
			for _, part := range strings.Split(got, `{"iccid":"`)[1:] {
				iccids += part[18:19]
			}
			relaytest.Equal(t, "the status", status, 200)
			relaytest.Equal(t, "the last digits of the SIMs", iccids, tc.iccids)
			answertest.Contains(t, "the answer", got, tc.total)
		})
	}
}

func TestInvalidListParametersAreRefused(t *testing.T) {
	a := newAPI(t)
	invalid := func(field, text string) string {
		return `{"success":false,"message":"Validation error.","errors":{"` + field + `":["` + text + `"]}}`
	}
	for query, want := range map[string]string{
		"per_page=501":                 invalid("per_page", "The per page must be a number from 1 to 500."),
		"per_page=x":                   invalid("per_page", "The per page must be a number from 1 to 500."),
		"page=0":                       invalid("page", "The page must be a number from 1 to 1000000000."),
		"order_by=pin":                 invalid("order_by", "The order by must be one of: iccid, imsi, msisdn."),
		"order_direction=up":           invalid("order_direction", "The order direction must be asc or desc."),
		"filters[pin][value]=1":        invalid("filters.pin.value", "The field must be one of: iccid, imsi, msisdn."),
		"filters[iccid]=1":             invalid("filters.iccid", "The field must be one of: iccid, imsi, msisdn."),
		"filters=1":                    invalid("filters", "The field must be one of: iccid, imsi, msisdn."),
		"filters[iccid][operator]=%3E": invalid("filters.iccid.operator", "The operator must be =, !=, like or starts_with."),
		"filters[iccid][operator]=%3E&filters[iccid][value]=1": invalid("filters.iccid.operator", "The operator must be =, !=, like or starts_with."),
		"filters[iccid][operator]=like&filters[iccid][value]=%2589": invalid("filters.iccid.value",
			"The value must be a text, or its beginning followed by %."),
		"filters[iccid][operator]=%3D&filters[iccid][value]=8%1f": invalid("filters.iccid.value", "The value must be a text of at most 255 characters."),
		"page=%zz":    invalid("query", "The query must be URL-encoded."),
		"states=done": invalid("states", "This parameter is unknown: the operation takes page, per_page, order_by, order_direction, filters."),
		"_=1":         invalid("_", "This parameter is unknown: the operation takes page, per_page, order_by, order_direction, filters."),
	} {
		t.Run(query, func(t *testing.T) {
			a.t = t
			for _, path := range []string{"/v3/mno?", "/v3/mno/pool/none/iccid?", "/v3/mno/subscriber/none?"} {
				a.expect("acme", "GET", path+query, "", 422, want)
			}
		})
	}
	a.t = t
	a.expectParts("acme", "GET", "/v3/mno/subscriber?order_by=iccid", "", 422, "id, forename, surname")
	a.expectParts("acme", "GET", "/v3/mno/subscriber?filters[id][value]=1", "", 422, "forename, surname")
	a.expect("acme", "GET", "/v3/mno/pool/none/iccid", "", 422, noPool)
	a.expect("acme", "GET", "/v3/mno/subscriber/none", "", 422, `{"success":false,"message":"Invalid subscriber."}`)
}

func TestMissingUnknownAndUnauthorizedTokensAreRefused(t *testing.T) {
	a := newAPI(t)
	a.expect("", "GET", "/v3/mno", "", 401, `{"success":false,"message":"Unauthenticated."}`)
	a.expect("nobody", "GET", "/v3/mno", "", 401, `{"success":false,"message":"Unauthenticated."}`)
	a.expect("iot", "GET", "/v3/mno", "", 403, `{"success":false,"message":"This action is unauthorised."}`)
}

func TestGetSIM(t *testing.T) {
	a := newAPI(t)
	a.expect("acme", "GET", "/v3/mno/"+iccid("1"), "", 200, `{"success":true,"message":"SIM found.","data":{"iccid":"8944000000000000001",`+
		`"imsi":"234150000000001","msisdn":"447700900001","service_4g":false,"service_5g":false,"pin":"1234","pin2":"","puk":"12345678","puk2":"",`+
		`"current_state":"active","requested_state":"active"}}`)
	for _, unknown := range []string{iccid("6"), "8944", "x%20y", iccid("0")} {
		a.expect("acme", "GET", "/v3/mno/"+unknown, "", 404, noSIM)
	}
}

func TestUsageLimits(t *testing.T) {
	a := newAPI(t)
	path := "/v3/mno/" + iccid("1") + "/usage-limit"
	a.expectParts("acme", "PUT", path, `{"monthly_usage_limit":1000}`, 200,
		`"monthly_usage_limit":1000,"monthly_usage_limit_warning":null,"cap_limit_type":"notify"`)
	a.expectParts("acme", "PUT", path, `{"monthly_usage_limit":1e3,"monthly_usage_limit_warning":800,"cap_limit":"block"}`, 200,
		`"monthly_usage_limit":1000,"monthly_usage_limit_warning":800,"cap_limit_type":"block"`)
	a.expect("acme", "PUT", path, `{"monthly_usage_limit":null}`, 422, `{"success":false,"message":"Validation error.","errors":{"monthly_usage_limit":["The monthly usage limit field is required."]}}`)
	for _, body := range []string{`{"monthly_usage_limit":1000,"monthly_usage_limit_warning":1001}`, `{"monthly_usage_limit":799}`} { // 800 stays
		a.expectParts("acme", "PUT", path, body, 422, warningAboveLimit)
	}
	a.expectParts("acme", "PUT", path, `{"monthly_usage_limit":800}`, 200, `"monthly_usage_limit":800,"monthly_usage_limit_warning":800`)
	a.expectParts("acme", "PUT", path+"?monthly_usage_limit=0", "", 200, `"monthly_usage_limit":0,"monthly_usage_limit_warning":800,"cap_limit_type":"block"`)
	a.expect("acme", "PUT", path, `{}`, 422, `{"success":false,"message":"Validation error.","errors":{"monthly_usage_limit":["The monthly usage limit field is required."]}}`)
	a.expectParts("acme", "PUT", path, `{"monthly_usage_limit":-1,"monthly_usage_limit_warning":1.5,"cap_limit":"all"}`, 422, `"monthly_usage_limit_warning":["The monthly usage limit warning must be an integer."]`)
	a.expectParts("acme", "PUT", path, `{"monthly_usage_limit":-1,"cap_limit":"all"}`, 422, `must be at least 0`, `must be none, notify or block`)
	for _, number := range []string{`{}`, `"0x1p4"`, `"1_0"`, `"16"`, `1e-400`, `true`, `9223372036854775808`} {
		a.expectParts("acme", "PUT", path, `{"monthly_usage_limit":`+number+`}`, 422, `"monthly_usage_limit":["The monthly usage limit must be an integer."]`)
	}
	for _, number := range []string{"0x1p4", "1_0", "%2B5", "1e-400", "Inf"} {
		a.expectParts("acme", "PUT", path+"?monthly_usage_limit="+number, "", 422, `"monthly_usage_limit":["The monthly usage limit must be an integer."]`)
	}
	a.expectParts("acme", "PUT", path, `{"monthly_usage_limit":1e16}`, 200, `"monthly_usage_limit":10000000000000000`)
	a.expectParts("acme", "PUT", path+"?monthly_usage_limit=1e3", "", 200, `"monthly_usage_limit":1000,`)
	a.expect("globex", "PUT", path, `{"monthly_usage_limit":5}`, 404, noSIM)
	a.expectParts("acme", "PUT", path, `{`, 422, `"body":["Invalid JSON."]`)
	a.expectParts("acme", "PUT", path, `[]`, 422, `"body":["The body must be an object."]`)
	if status, got := a.ask("acme", "PUT", path, `{}`, "Content-Type", "text/plain"); status != 415 {
		t.Errorf("status = %d, want 415: %s", status, got)
	}
}

func TestRecipientsOfASIM(t *testing.T) {
	a := newAPI(t)
	path := "/v3/mno/" + iccid("1") + "/recipient"
	created := a.expectParts("acme", "POST", path, `{"email":" ops@example.com ","number":"4477"}`, 201, `"email":"ops@example.com","number":"4477"`)
	id := created["recipients"].([]any)[0].(map[string]any)["id"].(string)
	a.expect("acme", "POST", path, `{"email":"OPS@example.com"}`, 422, `{"success":false,"message":"Recipient already exists."}`)
	a.expectParts("acme", "POST", path+"?email=desk@example.com", "", 201, `"number":null`)
	for _, body := range []string{`{}`, `{"email":"x"}`, `{"email":"A <a@example.com>"}`, `{"email":7}`, `{"email":"a@example.com","number":"+44"}`} {
		a.expectParts("acme", "POST", path, body, 422, `"message":"Validation error."`)
	}
	a.expect("globex", "POST", path, `{"email":"ops@example.com"}`, 404, noSIM)
	for _, unknown := range []string{id + "x", "none", iccid("6") + "-x", iccid("0") + "-x"} {
		a.expect("acme", "DELETE", "/v3/mno/recipient/"+unknown, "", 422, noRecipient)
	}
	a.expect("globex", "DELETE", "/v3/mno/recipient/"+id, "", 422, noRecipient)
	a.expect("acme", "DELETE", "/v3/mno/recipient/"+id, "", 204, "")
	a.expect("acme", "DELETE", "/v3/mno/recipient/"+id, "", 422, noRecipient)
}

func TestPools(t *testing.T) {
	a := newAPI(t)
	created := a.expectParts("acme", "POST", "/v3/mno/pool", `{"name":"Meters","monthly_usage_limit":5e9,"cap_limit":"notify","recipients":[{"email":"a@example.com","number":null}]}`, 201,
		`"name":"Meters","monthly_usage_limit":5000000000,"monthly_usage_limit_warning":null,"cap_limit_type":"notify"`, `"email":"a@example.com","number":null`)
	pool := "/v3/mno/pool/" + created["id"].(string)
	recipient := created["recipients"].([]any)[0].(map[string]any)["id"].(string)
	a.expectParts("acme", "PUT", pool, `{"recipients":[{"email":"b@example.com"},{"email":"A@example.com","number":"44"}]}`, 200, `"name":"Meters"`, `"`+recipient+`","email":"A@example.com","number":"44"`)
	a.expectParts("acme", "PUT", pool, `{}`, 200, `"email":"b@example.com"`, `"monthly_usage_limit":5000000000`)
	a.expectParts("acme", "PUT", pool, `{"monthly_usage_limit":null,"monthly_usage_limit_warning":7}`, 200, `"monthly_usage_limit":null,"monthly_usage_limit_warning":7`)
	a.expectParts("acme", "PUT", pool, `{"monthly_usage_limit":6}`, 422, warningAboveLimit)
	a.expectParts("acme", "POST", "/v3/mno/pool", `{"name":"x","monthly_usage_limit":6,"monthly_usage_limit_warning":7}`, 422, warningAboveLimit)
	a.expectParts("acme", "PUT", pool, `{"monthly_usage_limit_warning":null}`, 200, `"monthly_usage_limit_warning":null`)
	for body, want := range map[string]string{
		`{"name":" "}`:                    `"name":["The name field is required."]`,
		`{"name":"x","cap_limit":"most"}`: `none, notify or block`,
		`{"name":"x","monthly_usage_limit":0,"monthly_usage_limit_warning":-1}`:           `"The monthly usage limit warning must be greater than 0."`,
		`{"name":"x","recipients":{}}`:                                                    `"The recipients must be an array."`,
		`{"name":"x","recipients":[7]}`:                                                   `recipients.0`,
		`{"name":"x","recipients":[{"email":"a"}]}`:                                       `recipients.0.email`,
		`{"name":"x","recipients":[{"email":"bär@example.com"}]}`:                         `"recipients.0.email":["The recipients.0.email must be a valid email address."]`,
		`{"name":"x","recipients":[{"email":"a@example.com"},{"email":"A@example.com"}]}`: `"The recipients.1.email has a duplicate value."`,
		`{"name":"x","recipients":[{"email":"a@example.com","number":7}]}`:                `"recipients.0.number":["The number must be a string."]`,
		`{"name":"` + strings.Repeat("x", 256) + `"}`:                                     `one line`,
	} {
		a.expectParts("acme", "POST", "/v3/mno/pool", body, 422, want)
		a.expectParts("acme", "PUT", pool, body, 422, want)
	}
	a.expectParts("acme", "POST", "/v3/mno/pool", `{}`, 422, `"The name field is required."`)
	a.expect("globex", "PUT", pool, `{"name":"x"}`, 422, noPool)
	a.expectParts("acme", "POST", pool+"/recipient", `{"email":"c@example.com","number":"447700900001"}`, 201, `"email":"c@example.com"`)
	a.expectParts("acme", "POST", pool+"/recipient", `{"email":"C@example.com","number":"447700900001"}`, 422, `"Recipient already exists."`)
	a.expectParts("acme", "POST", pool+"/recipient", `{"email":"d@example.com"}`, 422, `"The number field is required."`)
	a.expect("globex", "POST", pool+"/recipient", `{"email":"d@example.com","number":"1"}`, 422, noPool)
	a.expect("globex", "DELETE", pool+"/recipient/"+recipient, "", 422, noPool)
	a.expect("acme", "DELETE", pool+"/recipient/none", "", 422, noRecipient)
	a.expect("acme", "DELETE", pool+"/recipient/"+recipient, "", 204, "")
}

func TestSIMsOfPools(t *testing.T) {
	a := newAPI(t)
	created := a.expectParts("acme", "POST", "/v3/mno/pool", `{"name":"Meters"}`, 201)
	pool := "/v3/mno/pool/" + created["id"].(string)
	list := func(numbers ...string) string {
		for i, n := range numbers {
			numbers[i] = `"` + iccid(n) + `"`
		}
		return `{"iccids":[` + strings.Join(numbers, ",") + `]}`
	}
	invalidICCID := func(n string) string { return `{"success":false,"message":"Invalid ICCID: ` + n + `."}` }
	a.expect("acme", "POST", pool+"/iccid", list("1", "6"), 422, invalidICCID(iccid("6")))
	a.expect("acme", "POST", pool+"/iccid", `{"iccids":["x"]}`, 422, invalidICCID("x"))
	a.expectParts("acme", "POST", pool+"/iccid", `{"iccids":[]}`, 422, `"The iccids field is required."`)
	a.expectParts("acme", "POST", pool+"/iccid", `{"iccids":"`+iccid("1")+`"}`, 422, `"iccids":["The iccids must be an array."]`)
	a.expectParts("acme", "POST", pool+"/iccid", `{"iccids":[7]}`, 422, `must be an array of strings`)
	a.expectParts("acme", "GET", pool+"/iccid", "", 200, `"total":0`)
	a.expect("globex", "POST", pool+"/iccid", list("6"), 422, noPool)
	a.expect("acme", "POST", pool+"/iccid", list("1", "2", "1"), 201, `{"success":true,"message":"ICCIDs attached to the pool."}`)
	a.expectParts("acme", "GET", pool+"/iccid?per_page=1", "", 200, iccid("1"), `"last_page":2,"per_page":1,"total":2,"count":1`)
	a.expect("globex", "GET", pool+"/iccid", "", 422, noPool)
	a.expect("globex", "DELETE", pool+"/iccid/detach", list("1"), 422, noPool)
	a.expect("acme", "DELETE", pool+"/iccid/detach", list("1", "3"), 422, invalidICCID(iccid("3")))
	a.expectParts("acme", "DELETE", pool+"/iccid/detach", list("1", "2"), 200, `"name":"Meters"`)
	a.expectParts("acme", "GET", pool+"/iccid", "", 200, `"total":0`)
}

func TestSubscribers(t *testing.T) {
	a := newAPI(t)
	const ada = `{"forename":"Ada","surname":"Byron","address":"12 St James Square","post_code":"SW1Y","contact_no":"1","contact_email":"ada@example.com"}`
	created := a.expectParts("acme", "POST", "/v3/mno/subscriber/register", ada, 201, `"forename":"Ada","surname":"Byron","title":""`)
	a.expectParts("acme", "GET", "/v3/mno/subscriber?filters[surname][operator]=like&filters[surname][value]=BY%25", "", 200, `"forename":"Ada"`, `"total":1`)
	a.expectParts("globex", "GET", "/v3/mno/subscriber", "", 200, `"data":[]`, `"total":0`)
	id := created["id"].(string)
	a.expectParts("acme", "GET", "/v3/mno/subscriber/"+id, "", 200, `"data":[]`)
	a.expectParts("globex", "GET", "/v3/mno/subscriber/"+id, "", 422, `"Invalid subscriber."`)
	a.expectParts("acme", "POST", "/v3/mno/subscriber/register", `{"contact_email":"x","city":"a\u0000b"}`, 422,
		`"forename":["The forename field is required."]`, `"contact_no"`, `"post_code"`, `"address"`, `"surname"`, `valid email`, `one line`)
}

func TestCallback(t *testing.T) {
	a := newAPI(t)
	change := func(url string) string { return `{"callback_url":"` + url + `"}` }
	for url, want := range map[string]string{
		"":                      "The callback url field is required.",
		"http://example.com/":   "The callback url must begin with https://.",
		"https://":              "The callback url must be a valid URL.",
		"https://exa mple.com/": "The callback url must be a valid URL.",
		"https://away.example":  "The callback url must be reachable: no answer.",
	} {
		a.expect("acme", "PUT", "/v3/mno/callback", change(url), 422, `{"success":false,"message":"Validation error.","errors":{"callback_url":["`+want+`"]}}`)
	}
	a.expect("acme", "PUT", "/v3/mno/callback", change("https://example.com/hook"), 204, "")
	acme, err := a.db.Accounts.Account(t.Context(), 1)
	relaytest.NoError(t, err)
	globex, err := a.db.Accounts.Account(t.Context(), 2)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the callback of the account", acme.CallbackURL, "https://example.com/hook")
	relaytest.Equal(t, "the name of the account", acme.Name, "acme")
	relaytest.Equal(t, "the callback of the other account", globex.CallbackURL, "")
}

func TestUnavailableStoreIs424(t *testing.T) {
	a := newAPI(t)
	a.expectParts("acme", "GET", "/v3/mno", "", 200) // caches the token
	relaytest.NoError(t, a.db.Close())
	const want = `{"success":false,"message":"Service temporarily unavailable. Please try again later."}`
	a.expect("acme", "GET", "/v3/mno", "", 424, want)
	a.expect("unknown", "GET", "/v3/mno", "", 424, want)
	a.expect("acme", "PUT", "/v3/mno/"+iccid("1")+"/usage-limit", `{"monthly_usage_limit":1}`, 424, want)
}

// An unknown operation is answered in the envelope of this surface.
func TestUnknownRoutesAndMethods(t *testing.T) {
	a := newAPI(t)
	const notFound = `{"success":false,"message":"Not found."}`
	for _, tc := range []struct{ token, method, path, want string }{
		{"acme", "GET", "/v3/mno/job/x/y/z", notFound},
		{"acme", "GET", "/v3/mno/callback/x", notFound},
		{"acme", "PATCH", "/v3/mno/" + iccid("1"), notFound},
		{"acme", "DELETE", "/v3/mno/callback", notFound},
		{"", "GET", "/v3", notFound},
		{"", "POST", "/v3/other", notFound},
		{"", "GET", "/V3/other", notFound},
		{"", "GET", "/v30", `{"message":"Not found."}`},
	} {
		req := httptest.NewRequest(tc.method, tc.path, nil)
		req.Header.Set("X-Auth-Token", tc.token)
		resp, err := a.app.Test(req, -1)
		relaytest.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		relaytest.NoError(t, err)
		relaytest.Equal(t, tc.method+" "+tc.path+": the status", resp.StatusCode, 404)
		relaytest.Equal(t, tc.method+" "+tc.path+": the answer", string(body), tc.want)
	}
}
