package inventory

import (
	"bytes"
	"slices"

	"github.com/penstock/penstock/config/strict"
)

// Options says what a document is checked against. The zero value checks it by
// itself.
type Options struct {
	// Load returns what earlier inventories declared, sealed, as far as it concerns a
	// document: masks of its secrets are understood, its accounts keep their ids,
	// references to it are valid and its claims stand. nil: nothing was declared.
	Load func(d Document) (Set, error)
	// Prune removes the records that an earlier document of the same name declared
	// and this one omits.
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

// Recognises reports whether a file is an inventory, by its top-level fields: a
// configuration file has none of them.
func Recognises(data []byte) bool {
	return slices.ContainsFunc(strict.Keys(data), func(key string) bool {
		return slices.Contains([]string{"document", "sensor_types", "networks", "accounts"}, key)
	})
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
	var set Set
	if o.Load != nil {
		var err error
		if set, err = o.Load(d); err != nil {
			return nil, err
		}
	}
	known := newKnown(set.Whole())
	known.unmask(&d, &mistakes)
	parts := set.Parts()
	if o.Prune {
		parts = slices.DeleteFunc(parts, func(part Document) bool { return part.Owner() == d.Owner() })
	}
	c := checker{Options: o, known: known, standing: newKnown(Merge(parts...)), mistakes: &mistakes, claims: map[string]string{}}
	c.document(&d)
	for _, part := range parts {
		c.standingClaims(part, d)
	}
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

// known has the records of earlier inventories, as one document.
type known struct {
	Document
	index Index
}

func newKnown(d Document) known { return known{d, IndexOf(d.Accounts)} }

// account returns the earlier declaration of an account, by id or by name.
func (k known) account(a Account) Account {
	if i := k.index.Find(a); i >= 0 {
		return k.Accounts[i]
	}
	return Account{}
}
