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

var update = flag.Bool("update", false, "write the results of the adapters to testdata")

// A file in testdata has the cases of a carrier: a post (lines "query …" and "type …", an empty
// line, the body) and its result.
func TestPostsAreParsed(t *testing.T) {
	for _, name := range carrierNames(t) {
		path := filepath.Join("testdata", name+".txtar")
		a, err := txtar.ParseFile(path)
		relaytest.NoError(t, err)
		parse := Adapters()[name].Parse
		for i := 0; i+1 < len(a.Files); i += 2 {
			c, ok := strings.CutSuffix(a.Files[i].Name, ".post")
			if want := c + ".want"; !ok || a.Files[i+1].Name != want {
				t.Fatalf("files in %s = %s, %s, want NAME.post, NAME.want", path, a.Files[i].Name, a.Files[i+1].Name)
			}
			t.Run(name+": "+c, func(t *testing.T) {
				got := resultText(parse(entryOf(a.Files[i].Data)))
				if *update {
					a.Files[i+1].Data = []byte(got)
				} else if want := string(a.Files[i+1].Data); got != want {
					t.Errorf("result =\n%s\nwant\n%s", got, want)
				}
			})
		}
		if *update {
			relaytest.NoError(t, os.WriteFile(path, txtar.Format(a), 0o600))
		}
	}
}

// carrierNames returns the carriers with cases in testdata. Kannel and JSON have their own tests.
func carrierNames(tb testing.TB) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(Adapters())) {
		if name != "json" && name != "kannel" {
			names = append(names, name)
		}
	}
	files, err := filepath.Glob("testdata/*.txtar")
	relaytest.NoError(tb, err)
	if len(files) != len(names) {
		tb.Fatalf("files in testdata = %q, want one for each of %q", files, names)
	}
	return names
}

// entryOf parses a post in testdata.
func entryOf(post []byte) *intake.Entry {
	head, body, _ := bytes.Cut(post, []byte("\n\n"))
	e := &intake.Entry{Body: bytes.TrimSuffix(body, []byte("\n"))}
	for line := range strings.Lines(string(head)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "query":
			e.Query = value
		case "type":
			e.ContentType = value
		}
	}
	return e
}

// resultText returns the result of Parse as a text for testdata.
func resultText(found []inbound.Message, err error) string {
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
		b.WriteString(messageText(&found[i]) + "\n")
	}
	return b.String()
}

// messageText returns a message as a line of JSON without empty fields.
func messageText(m *inbound.Message) string {
	fields := []any{"id", m.CarrierID, "from", m.From, "to", m.To, "coding", int(m.Coding), "text", m.Text, "data", hex.EncodeToString(m.Data),
		"udh", hex.EncodeToString(m.UDH), "stat", int(m.Stat), "network", m.Network, "reference", m.Reference}
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

// FuzzParse checks that an adapter returns valid messages, an error with fields, or notMessage.
func FuzzParse(f *testing.F) {
	for _, name := range carrierNames(f) {
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
		switch n, isNotMessage := errors.AsType[notMessage](err); {
		case isNotMessage && n == "":
			t.Fatal("text of notMessage is empty")
		case err != nil && !isNotMessage && !errors.Is(err, params.ErrSyntax) && len(relay.FieldsOf(err)) == 0:
			t.Fatalf("error without fields: %v", err)
		case err == nil && len(found) == 0:
			t.Fatal("no messages and no error")
		}
		for _, m := range found {
			checkMessage(t, m)
		}
	})
}
