package inventory

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/penstock/penstock/config/strict"
)

// Options says what a document is checked against. The zero value checks it by
// itself.
type Options struct {
	// Known is what earlier inventories declared, sealed: masks of its secrets are
	// understood, and its accounts keep their ids.
	Known Document
	// Standing is what stays beside the document, by the document that declared it:
	// references to it are good, and its claims stand. nil: Known.
	Standing []Document
	// Load returns Known and Standing as one for a document, where they are not at
	// hand: what concerns it of them. nil: they are given.
	Load func(d Document) (Set, error)
	// Prune says that the records go which an earlier document of the same name
	// declared and this one omits.
	Prune bool
	// CheckURL refuses what requests must not reach; it gets scheme and host.
	CheckURL func(url string) error
	// CheckSource refuses a decoder's source that does not compile.
	CheckSource func(codec, source string) error
	// CheckEndpoint refuses what no relay of a kind (geo, vmn) takes as a URL over
	// REST. nil takes any http or https URL.
	CheckEndpoint func(kind, url string) error
	// CheckFilter refuses a relay's filter that does not compile.
	CheckFilter func(source string) error
	// CheckRule returns the mistakes in a rule by field, such as actions[0].body.
	// nil checks no more than its shape.
	CheckRule func(r Rule) map[string][]string
	// HasDecoder reports whether an account has a decoder that no document declares: one
	// that was created over REST. nil: none has.
	HasDecoder func(a Account, id string) (bool, error)
	// AllowHTTPCallback lets callback_url be http.
	AllowHTTPCallback bool
}

// Parse reads a document from YAML or JSON, at most 8 MiB, and fills in the
// defaults. Its error is strict.Mistakes, with every mistake, or that of Load or HasDecoder.
func Parse(data []byte, o Options) (*Document, error) {
	var d Document
	mistakes := strict.Decode(data, &d, strict.Options{MaxBytes: 8 << 20, MaxNodes: 2_000_000})
	mistakes.AddIf(len(bytes.TrimSpace(data)) == 0, "", "expected an inventory, got nothing")
	if d.Name == Default {
		d.Name = ""
	}
	if o.Load != nil {
		set, err := o.Load(d)
		if err != nil {
			return nil, err
		}
		o.Known, o.Standing = set.Whole(), set.Parts()
	}
	if o.Standing == nil {
		o.Standing = []Document{o.Known}
	}
	if o.Prune {
		o.Standing = slices.DeleteFunc(slices.Clone(o.Standing), func(part Document) bool { return part.Owner() == d.Owner() })
	}
	newKnown(o.Known).unmask(&d, &mistakes)
	c := checker{
		Options: o, known: newKnown(o.Known), standing: newKnown(o.Standing...), mistakes: &mistakes,
		claims: map[string]string{}, kinds: kinds(), plans: map[reflect.Type][]plan{},
	}
	c.document(&d)
	if c.failed != nil {
		return nil, c.failed
	}
	if err := mistakes.Err(); err != nil {
		return nil, err
	}
	return &d, nil
}

// UnmarshalText reads a span in Go's form.
func (d *Duration) UnmarshalText(text []byte) error {
	span, err := strict.ParseDuration(string(text))
	*d = Duration(span)
	return err
}

// known finds what earlier inventories declared.
type known struct {
	types    map[string]bool
	accounts map[string]Account
	byID     map[int64]Account
}

func newKnown(parts ...Document) known {
	d := mergeAll(parts...)
	k := known{types: map[string]bool{}, accounts: map[string]Account{}, byID: map[int64]Account{}}
	for _, s := range d.SensorTypes {
		k.types[s.ID] = true
	}
	for _, a := range d.Accounts {
		k.accounts[a.Name] = a
		if a.ID != 0 {
			k.byID[a.ID] = a
		}
	}
	return k
}

// account returns the earlier declaration of an account, by id or by name.
func (k known) account(a Account) Account {
	if old, ok := k.byID[a.ID]; ok {
		return old
	}
	old := k.accounts[a.Name]
	if a.ID != 0 && old.ID != 0 && old.ID != a.ID {
		return Account{}
	}
	return old
}
