package inventory

import (
	"bytes"
	"slices"

	"github.com/penstock/penstock/config/strict"
)

// Options has the records and functions with which a document is checked. The zero value
// checks the document without these.
type Options struct {
	// Load returns the sealed records of earlier inventories that a document may mask, refer
	// to or conflict with. nil means that there are none.
	Load func(d Document) (Set, error)
	// Prune removes the records that an earlier document of the same name declared
	// and this one omits.
	Prune bool
	// CheckURL returns an error for an origin, scheme and host, that requests must not reach.
	CheckURL func(url string) error
	// CheckSource returns an error for a decoder's source that does not compile.
	CheckSource func(codec, source string) error
	// CheckEndpoint returns an error for a URL that the REST API refuses for a relay of a kind, geo or
	// vmn. nil accepts all http and https URLs.
	CheckEndpoint func(kind, url string) error
	// CheckFilter returns an error for a relay's filter that does not compile.
	CheckFilter func(source string) error
	// CheckRule returns the mistakes in a rule by field, such as actions[0].body. nil checks
	// the types and values of single fields only.
	CheckRule func(r Rule) map[string][]string
	// HasDecoder reports whether an account has a decoder that was created over the REST API. nil
	// means that no account has one.
	HasDecoder func(a Account, id string) (bool, error)
	// AllowHTTPCallback lets callback_url be http.
	AllowHTTPCallback bool
}

// Recognises reports whether a file is an inventory: whether it has a top-level field of
// inventories, which configuration files do not have.
func Recognises(data []byte) bool {
	return slices.ContainsFunc(strict.Keys(data), func(key string) bool {
		return slices.Contains([]string{"document", "sensor_types", "networks", "accounts"}, key)
	})
}

// Parse reads a document from YAML or JSON, at most 8 MiB, and fills in the
// defaults. Its error is strict.Mistakes, with every mistake, or an error of Load or HasDecoder.
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
	known := newKnown(set.Merged())
	known.unmask(&d, &mistakes)
	parts := set.Parts()
	if o.Prune {
		parts = slices.DeleteFunc(parts, func(part Document) bool { return part.Owner() == d.Owner() })
	}
	c := checker{Options: o, known: known, remaining: newKnown(Merge(parts...)), mistakes: &mistakes, claims: map[string]string{}}
	c.document(&d)
	for _, part := range parts {
		c.earlierClaims(part, d)
	}
	if c.decoderErr != nil {
		return nil, c.decoderErr
	}
	if err := mistakes.Err(); err != nil {
		return nil, err
	}
	return &d, nil
}

// UnmarshalText parses a duration in Go's format.
func (d *Duration) UnmarshalText(text []byte) error {
	duration, err := strict.ParseDuration(string(text))
	*d = Duration(duration)
	return err
}

// known has the merged records of earlier inventories.
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
