package netserver

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/relaytest"
)

var update = flag.Bool("update", false, "write the results of Parse to testdata")

// TestPostsBecomeFrames runs the cases in testdata. The comment of a file describes the case.
// The section post has the request's headers and address, body its body, frames the expected
// frames and error the expected error.
func TestPostsBecomeFrames(t *testing.T) {
	for _, path := range cases(t) {
		a, err := txtar.ParseFile(path)
		relaytest.NoError(t, err)
		sentence, _, _ := strings.Cut(string(a.Comment), "\n")
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar")+": "+sentence, func(t *testing.T) {
			p := post(t, a)
			frames, err := Parse(p)
			inspected := p
			if inspected.Sender, _ = Inspect(p); inspected.Sender != "" {
				if sameFrames, _ := Parse(inspected); render(t, sameFrames) != render(t, frames) {
					t.Errorf("Parse returns other frames if the Sender is set to %s", inspected.Sender)
				}
			}
			got := map[string]string{"frames": render(t, frames), "error": ""}
			clear(p.Body) // as if the server reused the buffer
			if render(t, frames) != got["frames"] {
				t.Error("a frame aliases its body")
			}
			if err != nil {
				got["error"] = err.Error() + "\n"
			}
			if *update {
				updateCase(t, path, a, got)
				return
			}
			for name, text := range got {
				if want := section(a, name); text != want {
					t.Errorf("%s:\n%s\nwant:\n%s", name, text, want)
				}
			}
		})
	}
}

func cases(tb testing.TB) []string {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no cases: %v", err)
	}
	return paths
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// post parses the section post, which has the lines "query …", "type …", "path …", "device …".
func post(tb testing.TB, a *txtar.Archive) Post {
	p := Post{Body: []byte(section(a, "body")), ReceivedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	for line := range strings.Lines(section(a, "post")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "query":
			q, err := url.ParseQuery(value)
			if err != nil {
				tb.Fatal(err)
			}
			p.Query = q
		case "type":
			p.ContentType = value
		case "path":
			p.Path = value
		case "device":
			p.DeviceID = value
		default:
			tb.Fatalf("post: unknown line %q", line)
		}
	}
	return p
}

func updateCase(t *testing.T, path string, a *txtar.Archive, got map[string]string) {
	updated := &txtar.Archive{Comment: a.Comment}
	for _, f := range a.Files {
		if f.Name == "post" || f.Name == "body" {
			updated.Files = append(updated.Files, f)
		}
	}
	for _, name := range []string{"frames", "error"} {
		if got[name] != "" {
			updated.Files = append(updated.Files, txtar.File{Name: name, Data: []byte(got[name])})
		}
	}
	relaytest.NoError(t, os.WriteFile(path, txtar.Format(updated), 0o644))
}

// render returns frames as JSON without empty members.
func render(t *testing.T, frames []decoders.Frame) string {
	if len(frames) == 0 {
		return ""
	}
	raw, err := json.Marshal(frames)
	relaytest.NoError(t, err)
	var v any
	relaytest.NoError(t, json.Unmarshal(raw, &v))
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	relaytest.NoError(t, enc.Encode(prune(v)))
	return buf.String()
}

func prune(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = prune(v[i])
		}
	case map[string]any:
		for k, x := range v {
			if k == "Object" && x != nil {
				continue // a zero in the object is a value
			}
			x = prune(x)
			m, isMap := x.(map[string]any)
			switch {
			case x == nil, x == "", x == false, x == "0001-01-01T00:00:00Z", isMap && len(m) == 0:
				delete(v, k)
			case x == 0.0 && k != "Value" && k != "SNR" && len(k) > 3:
				delete(v, k)
			}
		}
	}
	return v
}
