package relay_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/penstock/penstock/relay"
)

func TestProblemsAreCollectedByParameter(t *testing.T) {
	p := relay.Problems{}
	if err := p.Err(); err != nil {
		t.Fatalf("error without problems = %v, want nil", err)
	}
	p.Require("device_id", " ")
	p.Require("name", "a")
	p.Limit("note", "four", 3)
	p.Limit("comment", "four", 4)
	p.Add("name", "100%s is not a name.")
	p.AddNamed("max_parts", "The %s must be a number.")
	p.AddAll("rule.", relay.Problems{"when": {"one", "two"}})
	want := map[string][]string{
		"device_id": {"The device id field is required."},
		"note":      {"The note must not be longer than 3 bytes."},
		"name":      {"100%s is not a name."},
		"max_parts": {"The max parts must be a number."},
		"rule.when": {"one", "two"},
	}
	err := p.Err()
	if got := relay.FieldsOf(err); !maps.EqualFunc(got, want, slices.Equal) || relay.KindOf(err) != relay.KindInvalid {
		t.Errorf("problems = %v of kind %s, want %v", got, relay.KindOf(err), want)
	}
}
