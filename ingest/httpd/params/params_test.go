package params_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

func words(name string) string { return relay.FieldWords(name) }

func TestObjectRefusesOtherBodies(t *testing.T) {
	for body, want := range map[string]error{
		`{"a":1}`: nil, ` {} `: nil, `{"a":1} {}`: params.ErrSyntax, `{"a":`: params.ErrSyntax, ``: params.ErrSyntax,
		`[]`: params.ErrNotObject, `null`: params.ErrNotObject, `"a"`: params.ErrNotObject,
	} {
		if _, err := params.Object([]byte(body)); err != want {
			t.Errorf("Object(%s): error = %v, want %v", body, err, want)
		}
	}
}

func TestTheQueryReplacesMissingAndNullMembers(t *testing.T) {
	body := map[string]any{"both": "body", "null": nil, "null in body": nil, "empty": ""}
	q := url.Values{"both": {"query"}, "null": {"query"}, "empty": {"query"}, "two": {"a", "b"}, "one[]": {"a"}, "mixed": {"a"}, "mixed[]": {"b"}}
	for name, want := range map[string]string{
		"both": "body true", "null": "query true", "null in body": "<nil> true", "empty": " true", "missing": "<nil> false",
		"two": "[a b] true", "one": "a true", "mixed": "[a b] true",
	} {
		v, present := params.OfObject(body).Or(params.OfValues(q, false))(name)
		if got := fmt.Sprint(v, " ", present); strings.ReplaceAll(got, "  ", " ") != strings.ReplaceAll(want, "  ", " ") {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if v, _ := params.OfValues(q, true)("one"); !reflect.DeepEqual(v, []any{"a"}) {
		t.Errorf("one[] = %#v, want a list", v)
	}
}

func TestEachReaderReturnsAValueOrAProblem(t *testing.T) {
	values := map[string]any{
		"text": "a", "number": json.Number("7"), "flag": true, "word": "0", "list": []any{"a", "b"}, "mixed": []any{"a", nil},
		"query": params.QueryText("a"), "query flag": params.QueryText("0"), "query number": params.QueryText("1e3"), "query hex": params.QueryText("0x1p4"),
		"empty query": params.QueryText(""), "large": json.Number("1e16"), "tiny": json.Number("1e-400"),
		"day": "2026-01-31", "old": "1969-12-31T23:59:59Z", "seven": "7", "zero": "0", "null": nil, "object": map[string]any{},
	}
	const form = "a date"
	read := map[string]func(input *params.Input, name string) string{
		"text":     func(input *params.Input, name string) string { return input.Text(name) },
		"required": func(input *params.Input, name string) string { return input.Required(name) },
		"texts":    func(input *params.Input, name string) string { return strings.Join(input.Texts(name), ",") },
		"flag": func(input *params.Input, name string) string {
			if v := input.Bool(name); v != nil {
				return fmt.Sprint(*v)
			}
			return ""
		},
		"time": func(input *params.Input, name string) string { return input.Time(name, form).Format("06-01-02") },
		"int":  func(input *params.Input, name string) string { return fmt.Sprint(input.Int(name, 50, 9, "from 1 to")) },
		"integer": func(input *params.Input, name string) string {
			if n := input.Integer(name); n != nil {
				return fmt.Sprint(*n)
			}
			return ""
		},
	}
	for call, want := range map[string]string{
		"text text": "a", "text null": "", "text number": " | The number must be a string.",
		"required text": "a", "required null": " | The null field is required.", "required number": " | The number must be a string.",
		"text query": "a", "texts query": "a", "flag query flag": "false", "flag empty query": "", "integer query number": "1000", "integer empty query": "",
		"integer number": "7", "integer large": "10000000000000000", "integer null": "", "integer tiny": " | The tiny must be an integer.",
		"integer word": " | The word must be an integer.", "integer query hex": " | The query hex must be an integer.", "integer flag": " | The flag must be an integer.",
		"texts list": "a,b", "texts text": " | The text must be an array.", "texts null": "", "texts mixed": " | The mixed must be an array of strings.",
		"texts object": " | The object must be an array.",
		"flag flag":    "true", "flag word": " | The word must be true or false.", "flag null": "", "flag query": " | The query must be true or false.",
		"time day": "26-01-31", "time null": "01-01-01 | The null field is required.", "time old": "01-01-01 | The old must be a date.",
		"time number": "01-01-01 | The number must be a string.",
		"int seven":   "7", "int null": "50", "int zero": "0 | The zero must be from 1 to 9.", "int text": "0 | The text must be from 1 to 9.",
	} {
		reader, name, _ := strings.Cut(call, " ")
		input := params.New(params.OfObject(values), words)
		got := read[reader](input, name)
		if input.Err() != nil {
			got += " | " + strings.Join(input.Problems[name], " ")
		}
		if got != want {
			t.Errorf("%s = %q, want %q", call, got, want)
		}
	}
}

func TestPathQueryAndContentType(t *testing.T) {
	app := fiber.New()
	app.Post("/:id/x", func(c *fiber.Ctx) error {
		input := params.New(params.OfQuery(c), words)
		return c.SendString(fmt.Sprint(params.Path(c, "id"), " ", params.Query(c, "q"), " ", input.Text("q"), " ", input.Optional("missing") == nil, " ", params.IsJSON(c)))
	})
	for contentType, isJSON := range map[string]bool{"application/json": true, "Application/JSON ; charset=utf-8": true, "application/jsonp": false, "": false} {
		req := httptest.NewRequest("POST", "/a%20b/x?q=1+2", nil)
		req.Header.Set("Content-Type", contentType)
		resp, err := app.Test(req)
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, 64)
		n, _ := resp.Body.Read(body)
		if got, want := string(body[:n]), fmt.Sprint("a b 1 2 1 2 true ", isJSON); got != want {
			t.Errorf("answer for %q = %q, want %q", contentType, got, want)
		}
	}
}

func TestUnknownParametersOfTheQueryAreRefused(t *testing.T) {
	app := fiber.New(fiber.Config{ErrorHandler: func(c *fiber.Ctx, err error) error {
		return c.SendString(fmt.Sprint(relay.FieldsOf(err)))
	}})
	app.Post("/:id", func(c *fiber.Ctx) error {
		input := params.OfRequest(c, params.OfObject(map[string]any{"text": "hi", "other": 1}).Or(params.OfQuery(c)), words)
		input.Text("text")
		input.MarkKnown("tokens")
		return input.Err()
	})
	app.Delete("/:id", params.WithoutQuery(func(c *fiber.Ctx) error { return c.SendStatus(204) }))
	for request, want := range map[string]string{
		"POST /7": "", "POST /7?text=hello&tokens[]=x&id=7": "", "DELETE /7": "", "DELETE /7?id=7": "",
		"POST /7?txt=hello":      "map[txt:[This parameter is unknown: the operation takes text, tokens.]]",
		"POST /7?other=1":        "map[other:[This parameter is unknown: the operation takes text, tokens.]]",
		"DELETE /7?dry_run=true": "map[dry_run:[This parameter is unknown: the operation takes no parameters.]]",
	} {
		method, target, _ := strings.Cut(request, " ")
		resp, err := app.Test(httptest.NewRequest(method, target, nil))
		relaytest.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		relaytest.NoError(t, err)
		relaytest.Equal(t, request, string(body), want)
	}
}

func TestListsRefuseUnknownParameters(t *testing.T) {
	app := fiber.New()
	app.Get("/:id/list", func(c *fiber.Ctx) error {
		input := params.OfList(c, words)
		input.Text("state")
		input.Int("page", 1, 9, "from 1 to")
		input.Value("filters")
		return c.SendString(fmt.Sprint(input.Err() == nil, " ", input.Problems))
	})
	const problem = "This parameter is unknown: the operation takes state, page, filters."
	for query, want := range map[string]string{
		"": "true map[]", "state=done&page=2": "true map[]", "state=": "true map[]", "id=7": "true map[]", "&=": "true map[]",
		"filters%5Biccid%5D%5Bvalue%5D=1": "true map[]",
		"states=done":                     "false map[states:[" + problem + "]]",
		"State=done&page=10":              "false map[State:[" + problem + "] page:[The page must be from 1 to 9.]]",
		"filter[iccid]=1":                 "false map[filter[iccid]:[" + problem + "]]",
		"_=1764150000&_=1764150001":       "false map[_:[" + problem + "]]",
		"%ff=1":                           "false map[\uFFFD:[" + problem + "]]",
	} {
		resp, err := app.Test(httptest.NewRequest("GET", "/a/list?"+query, nil))
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, 500)
		n, _ := resp.Body.Read(body)
		if got := string(body[:n]); got != want {
			t.Errorf("answer for %q = %s, want %s", query, got, want)
		}
	}
}
