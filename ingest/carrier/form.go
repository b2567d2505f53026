package carrier

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/inbound"
)

// Limits of what a carrier may say, in bytes. A text of 255 parts fits.
const (
	maxName = 255
	maxText = 64 << 10
	maxUDH  = 256
)

// form is the fields of a post and what is wrong with them.
type form struct{ *params.Input }

func newForm(get params.Source) *form {
	return &form{params.New(get, func(name string) string { return name })}
}

func (f *form) has(name string) bool { return f.Value(name) != nil }

// textOf returns a field that is text, or a number where digits are meant; missing is
// empty.
func textOf(v any) (text string, ok bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	}
	return "", false
}

// optional returns a text of at most limit bytes, empty if it is not there.
func (f *form) optional(name string, limit int) string {
	text, ok := textOf(f.Value(name))
	switch {
	case !ok:
		f.Add(name, "The "+name+" must be a string.")
	case len(text) > limit:
		f.Add(name, fmt.Sprintf("The %s may not be longer than %d bytes.", name, limit))
	default:
		return text
	}
	return ""
}

// required is optional for a field that must be there and not be empty.
func (f *form) required(name string, limit int) string {
	before := len(f.Problems)
	s := f.optional(name, limit)
	if s == "" && len(f.Problems) == before {
		f.Add(name, "The "+name+" field is required.")
	}
	return s
}

// hex returns octets written in hex.
func (f *form) hex(name string, limit int) []byte {
	b, err := hex.DecodeString(f.optional(name, 2*limit))
	if err != nil {
		f.Add(name, "The "+name+" must be hexadecimal octets.")
		return nil
	}
	return b
}

// addresses reads who sent the message to which number, from the fields that
// the carrier has for them.
func (f *form) addresses(m *inbound.Message, from, to string) {
	m.From, m.To = f.required(from, maxName), f.required(to, maxName)
	f.numbers(m, from, to)
}

// numbers tidies sender and number; the fields are where they came from.
func (f *form) numbers(m *inbound.Message, from, to string) {
	if !utf8.ValidString(m.From) {
		f.Add(from, "The "+from+" is not UTF-8.")
	}
	if number, ok := relay.NumberFrom(m.From); ok {
		m.From = number
	}
	if m.To == "" {
		return
	}
	number, ok := relay.NumberFrom(m.To)
	if !ok || len(number) > 15 {
		f.Add(to, "The "+to+" must be a number of 1 to 15 digits.")
	}
	m.To = number
}

// id checks an id that was found under one of several names.
func (f *form) id(name, id string) string {
	switch {
	case id == "":
		f.Add(name, "The "+name+" field is required.")
	case len(id) > maxName:
		f.Add(name, fmt.Sprintf("The %s may not be longer than %d bytes.", name, maxName))
	}
	return id
}

// plain returns a text that has to be there, as UTF-8.
func (f *form) plain(name string) string {
	if !f.has(name) {
		f.Add(name, "The "+name+" field is required.")
	}
	return strings.ToValidUTF8(f.optional(name, maxText), "\uFFFD")
}

// whole reads the text of a message that the carrier has joined, with the
// addresses of its media after it.
func (f *form) whole(alphabet *sms.Alphabet, m *inbound.Message, name string, media []string) {
	text := []string{f.plain(name)}
	if text[0] == "" && len(media) > 0 {
		text = nil
	}
	m.Text = strings.ToValidUTF8(strings.Join(append(text, media...), "\n"), "\uFFFD")
	m.Coding = codingOf(alphabet, m.Text)
}

// one returns the message, or what is wrong with it.
func (f *form) one(m inbound.Message) ([]inbound.Message, error) {
	if err := f.Err(); err != nil {
		return nil, err
	}
	return []inbound.Message{m}, nil
}
