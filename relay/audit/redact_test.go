package audit

import (
	"strings"
	"testing"
)

func TestSecretsAreMasked(t *testing.T) {
	for _, tc := range []struct {
		name  string
		value any
		want  string
	}{
		{"no value", nil, ""},
		{"a password", map[string]any{"name": "anna", "password": "s3cret"}, `{"name":"anna","password":"***"}`},
		{"an empty password", map[string]any{"new_password": ""}, `{"new_password":""}`},
		{"tokens in a list", map[string]any{"tokens": []string{"a", "b"}}, `{"tokens":["***","***"]}`},
		{"nested fields", map[string]any{"sims": []any{map[string]any{"iccid": "89", "pin": "0000", "puk2": 1234}}}, `{"sims":[{"iccid":"89","pin":"***","puk2":"***"}]}`},
		{"the query of a URL", []string{"https://example.com/in?key=abc"}, `["https://example.com/in?key=***"]`},
		{"private metadata of any form", map[string]any{"private_metadata": map[string]any{"name": "anna"}, "private_token": nil}, `{"private_metadata":"***","private_token":null}`},
		{"a field name in mixed case", map[string]any{"WebhookSecret": "x"}, `{"WebhookSecret":"***"}`},
		{"flags and numbers stay", map[string]any{"count": 3, "prune": true, "none": nil}, `{"count":3,"none":null,"prune":true}`},
	} {
		if got := string(Document(tc.value)); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestALongDocumentIsOmitted(t *testing.T) {
	if got := string(Document(strings.Repeat("x", maxDocument))); got != `{"omitted":"65538 bytes"}` {
		t.Errorf("got %s, want the length only", got)
	}
}

func TestChangesContainOnlyDifferences(t *testing.T) {
	object := func(pairs ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	a, b, c := object("id", "a", "x", 1), object("id", "b", "x", 1), object("id", "c", "x", 1)
	for _, tc := range []struct {
		name               string
		oldValue, newValue any
		wantOld, wantNew   string
	}{
		{"equal objects", object("x", 1), object("x", 1), "", ""},
		{"a new record", nil, object("x", 1), "", `{"x":1}`},
		{"a deleted record", object("x", 1), nil, `{"x":1}`, ""},
		{"a field", object("x", 1, "y", 2), object("x", 1, "y", 3), `{"y":2}`, `{"y":3}`},
		{"an added and a removed field", object("x", 1), object("y", 1), `{"x":1}`, `{"y":1}`},
		{"a changed element", object("l", []any{a, b}), object("l", []any{b, object("id", "a", "x", 2)}), `{"l":[{"id":"a","x":1}]}`, `{"l":[{"id":"a","x":2}]}`},
		{"added and removed elements", []any{a, b}, []any{b, c}, `[{"id":"a","x":1}]`, `[{"id":"c","x":1}]`},
		{"a list without ids", []any{1, 2}, []any{1}, `[1,2]`, `[1]`},
		{"a list with a repeated id", []any{a, a}, []any{a}, `[{"id":"a","x":1},{"id":"a","x":1}]`, `[{"id":"a","x":1}]`},
		{"a secret", object("password", "a", "x", 1), object("password", "b", "x", 2), `{"x":1}`, `{"x":2}`},
		{"a value of another type", object("x", []any{}), object("x", "text"), `{"x":[]}`, `{"x":"text"}`},
	} {
		oldPart, newPart := Changes(tc.oldValue, tc.newValue)
		if string(oldPart) != tc.wantOld || string(newPart) != tc.wantNew {
			t.Errorf("%s: got %s → %s, want %s → %s", tc.name, oldPart, newPart, tc.wantOld, tc.wantNew)
		}
	}
}

func TestOutcomeOfAStatus(t *testing.T) {
	for status, want := range map[int]Outcome{200: Done, 204: Done, 302: Done, 403: Refused, 422: Refused, 500: Failed, 503: Failed} {
		if got := OutcomeOf(status); got != want {
			t.Errorf("OutcomeOf(%d) = %s, want %s", status, got, want)
		}
	}
}
