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

var update = flag.Bool("update", false, "write what Parse returns into testdata")

// Each file of testdata is a case: its comment describes the case, post has the request's
// headers and address, body the body, frames the frames, and error the error if there is one.
func TestPostsBecomeFrames(t *testing.T) {
	for _, path := range cases(t) {
		a, err := txtar.ParseFile(path)
		relaytest.NoError(t, err)
		sentence, _, _ := strings.Cut(string(a.Comment), "\n")
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar")+": "+sentence, func(t *testing.T) {
			p := post(t, a)
			frames, err := Parse(p)
			told := p
			if told.Sender, _ = Inspect(p); told.Sender != "" {
				if again, _ := Parse(told); render(t, again) != render(t, frames) {
					t.Errorf("told that it is of %s, Parse returns other frames", told.Sender)
				}
			}
			got := map[string]string{"frames": render(t, frames), "error": ""}
			clear(p.Body) // the server reuses it
			if render(t, frames) != got["frames"] {
				t.Error("a frame aliases the body it was read from")
			}
			if err != nil {
				got["error"] = err.Error() + "\n"
			}
			if *update {
				write(t, path, a, got)
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
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "query":
			q, err := url.ParseQuery(rest)
			if err != nil {
				tb.Fatal(err)
			}
			p.Query = q
		case "type":
			p.ContentType = rest
		case "path":
			p.Path = rest
		case "device":
			p.DeviceID = rest
		default:
			tb.Fatalf("post: unknown line %q", line)
		}
	}
	return p
}

func write(t *testing.T, path string, a *txtar.Archive, got map[string]string) {
	out := &txtar.Archive{Comment: a.Comment}
	for _, f := range a.Files {
		if f.Name == "post" || f.Name == "body" {
			out.Files = append(out.Files, f)
		}
	}
	for _, name := range []string{"frames", "error"} {
		if got[name] != "" {
			out.Files = append(out.Files, txtar.File{Name: name, Data: []byte(got[name])})
		}
	}
	relaytest.NoError(t, os.WriteFile(path, txtar.Format(out), 0o644))
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
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	relaytest.NoError(t, enc.Encode(prune(v)))
	return out.String()
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
				continue // values, of which zero is one
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
