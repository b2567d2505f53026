package catalog

import (
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/relaytest"
)

// The examples of the documentation are a source, a payload and the readings.
func TestDocumentedExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/decoders.md")
	relaytest.NoError(t, err)
	examples := regexp.MustCompile("(?s)```(expr|javascript)\n(.*?)```\n```payload\n(.*?)```\n```readings\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if fences := strings.Count(string(page), "```"); len(examples) < 3 || fences != 6*len(examples) {
		t.Fatalf("%d examples, %d fences", len(examples), fences)
	}
	for i, e := range examples {
		t.Run(fmt.Sprintf("example %d, %s", i+1, e[1]), func(t *testing.T) {
			payload, err := hex.DecodeString(strings.Join(strings.Fields(e[3]), ""))
			relaytest.NoError(t, err)
			d, err := testCatalog.Compile(e[1], e[2], true)
			relaytest.NoError(t, err)
			res, err := d.Decode(&decoders.Frame{Payload: payload, FPort: 1, HasFPort: true})
			if got := lines(res); err != nil || sorted(got) != sorted(e[4]) {
				t.Errorf("got\n%swant\n%serror %v", got, e[4], err)
			}
		})
	}
}

func TestEveryCodecIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/decoders.md")
	relaytest.NoError(t, err)
	for _, name := range Names() {
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("%s is missing", name)
		}
	}
}

func lines(res decoders.Result) string {
	var b strings.Builder
	for _, r := range res.Readings {
		value := fmt.Sprint(r.Value)
		if r.IsText {
			value = strconv.Quote(r.Text)
		}
		fmt.Fprintf(&b, "%s = %s", r.Key, value)
		if !r.Time.IsZero() {
			b.WriteString(" at " + r.Time.Format(time.RFC3339))
		}
		b.WriteByte('\n')
	}
	for _, w := range res.Warnings {
		b.WriteString("warnings: " + w + "\n")
	}
	return b.String()
}

// sorted sorts the lines, because the order of the readings of expr is that of the source.
func sorted(text string) string {
	return strings.Join(slices.Sorted(strings.Lines(text)), "")
}
