package carrier

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/inbound"
)

// Several batches are in the works at once; of two posts with one id the first
// counts all the same.
func TestOfTwoPostsWithOneIDTheFirstCounts(t *testing.T) {
	f := newFlow(t, relayTo(1, inbound.Geographic, "g1", "44", inbound.HTTPGet, "http://geo/?m=%m"))
	const pairs = 200
	for i := range pairs {
		for _, text := range []string{"first", "second"} {
			e := intake.Entry{Account: 1, Source: "json", Path: "/inbound/sms/json",
				Body: fmt.Appendf(nil, `{"id":"m%d","from":"447700900123","to":"447811111111","text":"%s-%d"}`, i, text, i)}
			_, err := f.in.Accept(t.Context(), &e)
			must(t, err)
		}
	}
	f.settled(t)
	got, twice := f.targets()
	if len(got) != pairs || twice != 0 || slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "second") }) {
		t.Errorf("%d sent, %d twice: %q", len(got), twice, got)
	}
}

func TestKeysTellCarriersMessages(t *testing.T) {
	p := NewProcessor(&receiver{})
	key := func(e intake.Entry) string {
		it := item("n-1", 1, e)
		keys := p.Keys(&it, nil)
		if found, err := p.prepared(&it); len(found) == 1 && (found[0].ID != "n-1" || err != nil) {
			t.Errorf("prepared %+v, %v", found, err)
		}
		return fmt.Sprint(keys)
	}
	same, other := posted("a"), posted("b")
	elsewhere := posted("a")
	elsewhere.Source, elsewhere.Path = "json", "/inbound/sms/json/hq"
	if key(posted("a")) != key(same) || key(same) == key(other) || key(same) == key(elsewhere) {
		t.Error("keys do not tell messages apart")
	}
	if got := key(intake.Entry{Body: []byte("{")}); got != "[]" {
		t.Errorf("a post that cannot be read has keys: %s", got)
	}
}
