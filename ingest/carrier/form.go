package carrier

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders/gsm"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/inbound"
)

// Limits of what a carrier may say, in bytes. A text of 255 parts fits.
const (
	maxName = 255
	maxText = 64 << 10
	maxUDH  = 256
)

// value is a field as it came; ok says that it is text, or a number where
// digits are meant.
type value struct {
	text string
	ok   bool
}

// form reads fields and collects what is wrong with them.
type form struct {
	// get returns a field and whether it is there.
	get    func(name string) (value, bool)
	errors map[string][]string
}

func newForm(get func(string) (value, bool)) *form {
	return &form{get: get, errors: make(map[string][]string)}
}

func (f *form) fail(field, message string) {
	f.errors[field] = append(f.errors[field], message)
}

// err returns all that is wrong, or nil.
func (f *form) err() error {
	if len(f.errors) == 0 {
		return nil
	}
	return &relay.Error{Kind: relay.KindInvalid, Message: "The given data was invalid.", Fields: f.errors}
}

func (f *form) has(name string) bool {
	_, there := f.get(name)
	return there
}

// optional returns a text of at most limit bytes, empty if it is not there.
func (f *form) optional(name string, limit int) string {
	v, there := f.get(name)
	switch {
	case !there:
		return ""
	case !v.ok:
		f.fail(name, "The "+name+" must be a string.")
	case len(v.text) > limit:
		f.fail(name, fmt.Sprintf("The %s may not be longer than %d bytes.", name, limit))
	default:
		return v.text
	}
	return ""
}

// required is optional for a field that must be there and not be empty.
func (f *form) required(name string, limit int) string {
	before := len(f.errors)
	s := f.optional(name, limit)
	if s == "" && len(f.errors) == before {
		f.fail(name, "The "+name+" field is required.")
	}
	return s
}

// hex returns octets written in hex.
func (f *form) hex(name string, limit int) []byte {
	b, err := hex.DecodeString(f.optional(name, 2*limit))
	if err != nil {
		f.fail(name, "The "+name+" must be hexadecimal octets.")
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
		f.fail(from, "The "+from+" is not UTF-8.")
	}
	if number, ok := relay.NumberFrom(m.From); ok {
		m.From = number
	}
	if m.To == "" {
		return
	}
	number, ok := relay.NumberFrom(m.To)
	if !ok || len(number) > 15 {
		f.fail(to, "The "+to+" must be a number of 1 to 15 digits.")
	}
	m.To = number
}

// id checks an id that was found under one of several names.
func (f *form) id(name, id string) string {
	switch {
	case id == "":
		f.fail(name, "The "+name+" field is required.")
	case len(id) > maxName:
		f.fail(name, fmt.Sprintf("The %s may not be longer than %d bytes.", name, maxName))
	}
	return id
}

// plain returns a text that has to be there, as UTF-8.
func (f *form) plain(name string) string {
	if !f.has(name) {
		f.fail(name, "The "+name+" field is required.")
	}
	return strings.ToValidUTF8(f.optional(name, maxText), "\uFFFD")
}

// whole reads the text of a message that the carrier has joined, with the
// addresses of its media after it.
func (f *form) whole(alphabet *gsm.Alphabet, m *inbound.Message, name string, media []string) {
	text := []string{f.plain(name)}
	if text[0] == "" && len(media) > 0 {
		text = nil
	}
	m.Text = strings.ToValidUTF8(strings.Join(append(text, media...), "\n"), "\uFFFD")
	m.Coding = codingOf(alphabet, m.Text)
}

// one returns the message, or what is wrong with it.
func (f *form) one(m inbound.Message) ([]inbound.Message, error) {
	if err := f.err(); err != nil {
		return nil, err
	}
	return []inbound.Message{m}, nil
}
