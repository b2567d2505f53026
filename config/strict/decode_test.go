package strict_test

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/config/strict"
	"github.com/penstock/penstock/relay/relaytest"
)

type leaf struct {
	Kind  string  `json:"kind" strict:"scalar"`
	Ratio float64 `json:"ratio"`
}

type root struct {
	Name   string        `json:"name,omitempty"`
	Count  int64         `json:"count"`
	Limit  *int64        `json:"limit"`
	On     bool          `json:"on"`
	Wait   time.Duration `json:"wait"`
	Tags   []string      `json:"tags" strict:"one"`
	Leaf   leaf          `json:"leaf"`
	Leaves []leaf        `json:"leaves" strict:"one"`
}

func TestDecode(t *testing.T) {
	limit := int64(0)
	for name, tc := range map[string]struct {
		doc  string
		want root
	}{
		"every kind of value": {
			"name: a\ncount: -3\nlimit: 0\non: true\nwait: 1m30s\ntags: [x, y]\nleaf: {kind: k, ratio: 1}\nleaves: [{kind: l}]",
			root{Name: "a", Count: -3, Limit: &limit, On: true, Wait: 90 * time.Second, Tags: []string{"x", "y"}, Leaf: leaf{"k", 1}, Leaves: []leaf{{Kind: "l"}}},
		},
		"digits as a string keep their zeros":       {"name: 0044", root{Name: "0044"}},
		"a date as a string":                        {"name: 2026-01-02", root{Name: "2026-01-02"}},
		"a single entry for a list":                 {"tags: x\nleaves: {ratio: 0.5}", root{Tags: []string{"x"}, Leaves: []leaf{{Ratio: .5}}}},
		"a plain value for a struct":                {"leaf: simulator\nleaves: simulator", root{Leaf: leaf{Kind: "simulator"}, Leaves: []leaf{{Kind: "simulator"}}}},
		"null leaves a field unchanged":             {"name: null\ntags: ~", root{}},
		"an empty document":                         {"# nothing\n", root{}},
		"an alias":                                  {"leaf: &l {kind: k}\nleaves: [*l, *l]", root{Leaf: leaf{Kind: "k"}, Leaves: []leaf{{Kind: "k"}, {Kind: "k"}}}},
		"JSON":                                      {`{"name":"a","count":7,"on":false,"tags":["x"],"leaf":{"ratio":1e3},"limit":null}`, root{Name: "a", Count: 7, Tags: []string{"x"}, Leaf: leaf{Ratio: 1000}}},
		"JSON with a surrogate pair":                {`{"name":"\ud83d\ude00"}`, root{Name: "😀"}},
		"JSON indented by tabs after an empty line": {"\n{\n\t\"name\": \"a\"\n}\n", root{Name: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got root
			if m := strict.Decode([]byte(tc.doc), &got, strict.Options{}); m != nil {
				t.Fatalf("mistakes: %v", m)
			}
			relaytest.Equal(t, "the document", got, tc.want)
		})
	}
}

func TestDecodeNamesEveryMistake(t *testing.T) {
	for name, tc := range map[string]struct{ doc, want string }{
		"a misspelled field":                             {"nam: a", `nam: unknown field, did you mean "name"?`},
		"an unknown field with a list of the known ones": {"leaf: {colour: red}", "leaf.colour: unknown field, expected one of kind, ratio"},
		"an unknown field at the top":                    {"hidden: a", "hidden: unknown field, expected one of count, leaf, leaves, limit, name, on, tags, wait"},
		"a repeated field":                               {"name: a\nname: b", "name: given twice"},
		"a repeated field in JSON":                       {`{"name":"a","name":"b"}`, "name: given twice"},
		"text instead of a number":                       {"count: many", `count: expected a whole number, got "many"`},
		"a quoted number":                                {`count: "7"`, `count: expected a whole number, got "7"`},
		"a fraction instead of a whole number":           {"count: 1.5", `count: expected a whole number, got "1.5"`},
		"a number that is too large":                     {"count: 9223372036854775808", `count: expected a whole number, got "9223372036854775808"`},
		"an octal number":                                {"count: 0o17", `count: expected a whole number, got "0o17"`},
		"infinity":                                       {"leaf: {ratio: .inf}", `leaf.ratio: expected a number, got ".inf"`},
		"a fraction with underscores":                    {"leaf: {ratio: 1_0.5}", `leaf.ratio: expected a number, got "1_0.5"`},
		"a hexadecimal number":                           {"leaf: {ratio: 0x10}", `leaf.ratio: expected a number, got "0x10"`},
		"a fraction that is too small":                   {"leaf: {ratio: 1e-400}", `leaf.ratio: expected a number, got "1e-400"`},
		"a boolean of YAML 1.1":                          {"on: yes", `on: expected true or false, got "yes"`},
		"a number instead of a string":                   {"name: 1.5", "name: expected text in quotes"},
		"a boolean instead of a string":                  {"tags: [true]", "tags[0]: expected text in quotes"},
		"a list instead of a string":                     {"name: [a]", "name: expected text, got a list"},
		"a mapping instead of a list":                    {"tags: {a: b}", "tags[0]: expected text, got a mapping"},
		"a list instead of a mapping":                    {"leaves: [[a]]", "leaves[0]: expected a mapping, got a list"},
		"an empty entry":                                 {"tags: [a, ]\nleaves: [~]", "leaves[0]: expected a value, got nothing"},
		"a duration without a unit":                      {"wait: 5", `wait: expected a duration such as 90s or 2h30m, got "5"`},
		"several mistakes in the order of the document":  {"count: x\nleaves:\n- {ratio: y}\n- {kin: z}", "count: expected a whole number, got \"x\"\nleaves[0].ratio: expected a number, got \"y\"\nleaves[1].kin: unknown field, did you mean \"kind\"?"},
		"a list instead of the document":                 {"- a", "expected a mapping, got a list"},
		"two documents":                                  {"name: a\n---\nname: b", "expected one document, got more than one"},
		"a merge key":                                    {"leaf: {<<: {kind: k}}", "leaf.<<: unknown field, expected one of kind, ratio"},
		"invalid YAML":                                   {"name: [a", "expected YAML or JSON: line 1: did not find expected ',' or ']'"},
	} {
		t.Run(name, func(t *testing.T) {
			var got root
			if m := strict.Decode([]byte(tc.doc), &got, strict.Options{}); m.Error() != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", m.Error(), tc.want)
			}
		})
	}
}

func TestDecodeIsBounded(t *testing.T) {
	anchors := "name: x\nleaf: &a {kind: k}\ntags: &b [" + strings.Repeat("l,", 400) + "]\nleaves: ["
	for name, doc := range map[string]string{
		"many aliases":                   anchors + strings.Repeat("{kind: k, ratio: 1},", 10) + strings.Repeat("*a,", 12000) + "]",
		"an alias within its own anchor": "leaves: &l [*l]",
		"deep nesting":                   "leaves: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"a large document":               "name: " + strings.Repeat("x", 5<<20),
	} {
		t.Run(name, func(t *testing.T) {
			var got root
			m := strict.Decode([]byte(doc), &got, strict.Options{})
			if len(m) == 0 || len(m) > 101 {
				t.Errorf("%d mistakes, want 1 to 101", len(m))
			}
		})
	}
}

func TestNearest(t *testing.T) {
	known := []string{"credit", "id", "name"}
	for name, want := range map[string]string{"credt": "credit", "Credit": "credit", "nmae": "name", "x": "", "colour": ""} {
		if got, _ := strict.Nearest(name, known); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"name: a\ncount: 1\nleaves: [{kind: k, ratio: 1.5}]", `{"name":"\ud83d\ude00","tags":["x"]}`,
		"a: &a [*a]", "leaves: &l [*l]", "<<: {}", "!!binary x", "? [a]\n: b", "wait: 1h\nlimit: 3\non: true",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var got root
		for _, m := range strict.Decode(doc, &got, strict.Options{}) {
			if m.Text == "" || len(m.String()) > 2000 {
				t.Errorf("a mistake without text or longer than 2000 bytes: %q", m)
			}
		}
	})
}
