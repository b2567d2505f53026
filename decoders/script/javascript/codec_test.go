package javascript

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/relaytest"
)

// fixture is a codec, a frame and what the one makes of the other.
type fixture struct {
	name, source, want string
	frame              decoders.Frame
}

func fixtures(t testing.TB) []fixture {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) < 15 {
		t.Fatalf("%d fixtures, error %v", len(paths), err)
	}
	var out []fixture
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		relaytest.NoError(t, err)
		f := fixture{name: strings.TrimSuffix(filepath.Base(path), ".txtar") + ": " + strings.TrimSpace(string(a.Comment))}
		for _, part := range a.Files {
			switch part.Name {
			case "codec.js":
				f.source = string(part.Data)
			case "frame":
				f.frame = readFrame(t, string(part.Data))
			case "want":
				f.want = string(part.Data)
			}
		}
		out = append(out, f)
	}
	return out
}

func readFrame(t testing.TB, text string) decoders.Frame {
	t.Helper()
	f := decoders.Frame{Identifier: "a84041d2c5182f01", FCnt: 7, HasFPort: true, NetworkTime: time.Date(2026, 2, 14, 6, 30, 0, 0, time.UTC)}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		var err error
		switch key {
		case "port":
			f.FPort, err = strconv.Atoi(value)
		case "hex":
			f.Payload, err = hex.DecodeString(strings.ReplaceAll(value, " ", ""))
		case "params":
			err = json.Unmarshal([]byte(value), &f.Params)
		}
		relaytest.NoError(t, err)
	}
	return f
}

// show writes a result as the fixtures hold it.
func show(res decoders.Result, err error) string {
	var b strings.Builder
	for _, r := range res.Readings {
		value := fmt.Sprintf("%.16g", r.Value)
		if r.IsText {
			value = strconv.Quote(r.Text)
		}
		fmt.Fprintf(&b, "%s = %s", r.Key, value)
		if !r.Time.IsZero() {
			fmt.Fprintf(&b, " at %s", r.Time.Format(time.RFC3339))
		}
		b.WriteByte('\n')
	}
	for _, e := range res.Errors {
		fmt.Fprintf(&b, "errors: %s\n", e)
	}
	for _, w := range res.Warnings {
		fmt.Fprintf(&b, "warnings: %s\n", w)
	}
	if err != nil {
		fmt.Fprintf(&b, "failed: %v\n", err)
	}
	return b.String()
}

func TestPublishedStylesRunUnchanged(t *testing.T) {
	for _, f := range fixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			c, err := Compile(f.source)
			relaytest.NoError(t, err)
			for range 2 {
				res, err := c.Decode(&f.frame)
				if got := show(res, err); got != f.want {
					t.Fatalf("got\n%s\nwant\n%s", got, f.want)
				}
			}
		})
	}
}
