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

func TestDecodeReadsWhatPeopleWrite(t *testing.T) {
	limit := int64(0)
	for name, tc := range map[string]struct {
		doc  string
		want root
	}{
		"every kind of value": {
			"name: a\ncount: -3\nlimit: 0\non: true\nwait: 1m30s\ntags: [x, y]\nleaf: {kind: k, ratio: 1}\nleaves: [{kind: l}]",
			root{Name: "a", Count: -3, Limit: &limit, On: true, Wait: 90 * time.Second, Tags: []string{"x", "y"}, Leaf: leaf{"k", 1}, Leaves: []leaf{{Kind: "l"}}},
		},
		"digits as text keep their zeros":     {"name: 0044", root{Name: "0044"}},
		"a date as text":                      {"name: 2026-01-02", root{Name: "2026-01-02"}},
		"a single entry for a list":           {"tags: x\nleaves: {ratio: 0.5}", root{Tags: []string{"x"}, Leaves: []leaf{{Ratio: .5}}}},
		"a plain value for a struct":          {"leaf: simulator\nleaves: simulator", root{Leaf: leaf{Kind: "simulator"}, Leaves: []leaf{{Kind: "simulator"}}}},
		"null keeps what was there":           {"name: null\ntags: ~", root{}},
		"an empty document":                   {"# nothing\n", root{}},
		"an alias":                            {"leaf: &l {kind: k}\nleaves: [*l, *l]", root{Leaf: leaf{Kind: "k"}, Leaves: []leaf{{Kind: "k"}, {Kind: "k"}}}},
		"JSON":                                {`{"name":"a","count":7,"on":false,"tags":["x"],"leaf":{"ratio":1e3},"limit":null}`, root{Name: "a", Count: 7, Tags: []string{"x"}, Leaf: leaf{Ratio: 1000}}},
		"JSON with a surrogate pair":          {`{"name":"\ud83d\ude00"}`, root{Name: "😀"}},
		"JSON indented by tabs after a break": {"\n{\n\t\"name\": \"a\"\n}\n", root{Name: "a"}},
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
		"an unknown field, nearly right":    {"nam: a", `nam: unknown field, did you mean "name"?`},
		"an unknown field, far from all":    {"leaf: {colour: red}", "leaf.colour: unknown field, expected one of kind, ratio"},
		"an unknown field at the top":       {"hidden: a", "hidden: unknown field, expected one of count, leaf, leaves, limit, name, on, tags, wait"},
		"a field twice":                     {"name: a\nname: b", "name: given twice"},
		"a field twice in JSON":             {`{"name":"a","name":"b"}`, "name: given twice"},
		"text for a number":                 {"count: many", `count: expected a whole number, got "many"`},
		"a quoted number":                   {`count: "7"`, `count: expected a whole number, got "7"`},
		"a fraction for a whole number":     {"count: 1.5", `count: expected a whole number, got "1.5"`},
		"a number that is too large":        {"count: 9223372036854775808", `count: expected a whole number, got "9223372036854775808"`},
		"an octal number":                   {"count: 0o17", `count: expected a whole number, got "0o17"`},
		"infinity":                          {"leaf: {ratio: .inf}", `leaf.ratio: expected a number, got ".inf"`},
		"a fraction with underscores":       {"leaf: {ratio: 1_0.5}", `leaf.ratio: expected a number, got "1_0.5"`},
		"a hexadecimal number":              {"leaf: {ratio: 0x10}", `leaf.ratio: expected a number, got "0x10"`},
		"a fraction that would become 0":    {"leaf: {ratio: 1e-400}", `leaf.ratio: expected a number, got "1e-400"`},
		"an old word for true":              {"on: yes", `on: expected true or false, got "yes"`},
		"a number for text is not repeated": {"name: 1.5", "name: expected text in quotes"},
		"true for text":                     {"tags: [true]", "tags[0]: expected text in quotes"},
		"a list for text":                   {"name: [a]", "name: expected text, got a list"},
		"a mapping for a list":              {"tags: {a: b}", "tags[0]: expected text, got a mapping"},
		"text for a mapping":                {"leaves: [[a]]", "leaves[0]: expected a mapping, got a list"},
		"an empty entry":                    {"tags: [a, ]\nleaves: [~]", "leaves[0]: expected a value, got nothing"},
		"no unit in a duration":             {"wait: 5", `wait: expected a duration such as 90s or 2h30m, got "5"`},
		"several at once, in order":         {"count: x\nleaves:\n- {ratio: y}\n- {kin: z}", "count: expected a whole number, got \"x\"\nleaves[0].ratio: expected a number, got \"y\"\nleaves[1].kin: unknown field, did you mean \"kind\"?"},
		"a list for the document":           {"- a", "expected a mapping, got a list"},
		"two documents":                     {"name: a\n---\nname: b", "expected one document, got more than one"},
		"a merge key":                       {"leaf: {<<: {kind: k}}", "leaf.<<: unknown field, expected one of kind, ratio"},
		"broken YAML":                       {"name: [a", "expected YAML or JSON: line 1: did not find expected ',' or ']'"},
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
	laughs := "name: x\nleaf: &a {kind: k}\ntags: &b [" + strings.Repeat("l,", 400) + "]\nleaves: ["
	for name, doc := range map[string]string{
		"aliases that multiply": laughs + strings.Repeat("{kind: k, ratio: 1},", 10) + strings.Repeat("*a,", 12000) + "]",
		"an alias of itself":    "leaves: &l [*l]",
		"nesting":               "leaves: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"size":                  "name: " + strings.Repeat("x", 5<<20),
	} {
		t.Run(name, func(t *testing.T) {
			var got root
			m := strict.Decode([]byte(doc), &got, strict.Options{})
			if len(m) == 0 || len(m) > 101 {
				t.Errorf("%d mistakes", len(m))
			}
		})
	}
}

func TestNearest(t *testing.T) {
	known := []string{"credit", "id", "name"}
	for given, want := range map[string]string{"credt": "credit", "Credit": "credit", "nmae": "name", "x": "", "colour": ""} {
		if got, _ := strict.Nearest(given, known); got != want {
			t.Errorf("%s: got %q, want %q", given, got, want)
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
				t.Errorf("an unreadable mistake: %q", m)
			}
		}
	})
}
