package carrier

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/relaytest"
)

var update = flag.Bool("update", false, "write what the adapters read into testdata")

// Each file of testdata is a carrier and holds its cases: what was posted
// (lines "query …" and "type …", an empty line, the body) and what is read.
func TestPostsBecomeMessages(t *testing.T) {
	for _, name := range carriers(t) {
		path := filepath.Join("testdata", name+".txtar")
		a, err := txtar.ParseFile(path)
		relaytest.NoError(t, err)
		parse := Adapters()[name].Parse
		for i := 0; i+1 < len(a.Files); i += 2 {
			c, ok := strings.CutSuffix(a.Files[i].Name, ".post")
			if want := c + ".want"; !ok || a.Files[i+1].Name != want {
				t.Fatalf("%s: %s is followed by %s, want NAME.post and NAME.want", path, a.Files[i].Name, a.Files[i+1].Name)
			}
			t.Run(name+": "+c, func(t *testing.T) {
				got := read(parse(entryOf(a.Files[i].Data)))
				if *update {
					a.Files[i+1].Data = []byte(got)
				} else if want := string(a.Files[i+1].Data); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		}
		if *update {
			relaytest.NoError(t, os.WriteFile(path, txtar.Format(a), 0o600))
		}
	}
}

// carriers are those with cases in testdata: all but the two that have tables
// of their own.
func carriers(tb testing.TB) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(Adapters())) {
		if name != "json" && name != "kannel" {
			names = append(names, name)
		}
	}
	files, err := filepath.Glob("testdata/*.txtar")
	relaytest.NoError(tb, err)
	if len(files) != len(names) {
		tb.Fatalf("the files %q are not those of %q", files, names)
	}
	return names
}

func entryOf(post []byte) *intake.Entry {
	head, body, _ := bytes.Cut(post, []byte("\n\n"))
	e := &intake.Entry{Body: bytes.TrimSuffix(body, []byte("\n"))}
	for line := range strings.Lines(string(head)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "query":
			e.Query = rest
		case "type":
			e.ContentType = rest
		}
	}
	return e
}

// read writes what became of a post for people to check.
func read(found []inbound.Message, err error) string {
	if n, ok := errors.AsType[notMessage](err); ok {
		return "no message: " + n.Error() + "\n"
	}
	var b strings.Builder
	if err != nil {
		b.WriteString("refused: " + err.Error() + "\n")
		for _, name := range slices.Sorted(maps.Keys(relay.FieldsOf(err))) {
			b.WriteString(name + ": " + strings.Join(relay.FieldsOf(err)[name], " ") + "\n")
		}
	}
	for i := range found {
		b.WriteString(shown(&found[i]) + "\n")
	}
	return b.String()
}

// shown is a message as one line of JSON, without what is not set.
func shown(m *inbound.Message) string {
	fields := []any{"id", m.CarrierID, "from", m.From, "to", m.To, "coding", int(m.Coding), "text", m.Text, "data", hex.EncodeToString(m.Data),
		"udh", hex.EncodeToString(m.UDH), "stat", int(m.Status), "network", m.Network, "reference", m.Reference}
	if !m.SentAt.IsZero() {
		fields = append(fields, "sent", m.SentAt.Format(time.RFC3339Nano))
	}
	if m.Part != nil {
		fields = append(fields, "part", *m.Part)
	}
	var b strings.Builder
	b.WriteByte('{')
	for i := 0; i < len(fields); i += 2 {
		v, _ := json.Marshal(fields[i+1])
		if string(v) == `""` || string(v) == "0" {
			continue
		}
		if b.Len() > 1 {
			b.WriteString(", ")
		}
		b.WriteString(fields[i].(string) + ": " + string(v))
	}
	return b.String() + "}"
}

// Whatever is posted, an adapter reads sound messages, names what is wrong, or
// says what it is.
func FuzzParse(f *testing.F) {
	for _, name := range carriers(f) {
		a, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
		relaytest.NoError(f, err)
		for _, file := range a.Files {
			if strings.HasSuffix(file.Name, ".post") {
				e := entryOf(file.Data)
				f.Add(name, e.Query, e.ContentType, e.Body)
			}
		}
	}
	adapters := Adapters()
	f.Fuzz(func(t *testing.T, name, query, contentType string, body []byte) {
		a, ok := adapters[name]
		if !ok {
			return
		}
		found, err := a.Parse(&intake.Entry{Query: query, ContentType: contentType, Body: body})
		switch n, no := errors.AsType[notMessage](err); {
		case no && n == "":
			t.Fatal("a post that is not a message does not say what it is")
		case err != nil && !no && !errors.Is(err, params.ErrSyntax) && len(relay.FieldsOf(err)) == 0:
			t.Fatalf("%v names no field", err)
		case err == nil && len(found) == 0:
			t.Fatal("neither a message nor a reason")
		}
		for _, m := range found {
			sound(t, m)
		}
	})
}
