package lookup

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Code is the outcome of a lookup.
type Code int

// The codes.
const (
	Delivered Code = 0 // the subscriber can be reached
	Absent    Code = 1
	Unknown   Code = 2 // the number has no subscriber
	NoAnswer  Code = 3 // the network did not answer; not charged
)

// Known reports whether the code is one of the constants.
func (c Code) Known() bool { return c >= Delivered && c <= NoAnswer }

// String returns the description of the code in responses.
func (c Code) String() string {
	if !c.Known() {
		return "Unknown code"
	}
	return [...]string{"Delivered by the network", "Absent subscriber", "Unknown subscriber", "No answer from the network"}[c]
}

// Result is the result of a lookup of a number.
type Result struct {
	Number  relay.MSISDN `json:"number"`
	Code    Code         `json:"code"`
	MCC     string       `json:"mcc,omitempty"` // 3 digits; empty if unknown
	MNC     string       `json:"mnc,omitempty"` // 2 or 3 digits
	Network string       `json:"network,omitempty"`
	Country string       `json:"country,omitempty"`
	Contact string       `json:"contact,omitempty"` // contact of the network; may be empty
	IMSI    string       `json:"imsi,omitempty"`    // empty if unknown
	Ported  bool         `json:"ported,omitempty"`
	Roaming bool         `json:"roaming,omitempty"`
}

// Network is a row of the simulator's network table.
type Network struct {
	Prefix  string `json:"prefix"` // digits, country code first
	MCC     string `json:"mcc"`
	MNC     string `json:"mnc"`
	Name    string `json:"name"`
	Country string `json:"country,omitempty"`
}

// Backend queries the networks.
type Backend interface {
	// Find queries the network of a number. If the network does not answer, the Code is NoAnswer.
	// Find returns relay.KindUnavailable if no query could be made.
	Find(ctx context.Context, number relay.MSISDN) (Result, error)
}

// Store caches results until they expire and stores the networks of the simulator. It is safe for
// concurrent use.
type Store struct{ db *db.DB }

// NewStore returns the store of lookups.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// Get returns the cached result of a number, or relay.KindNotFound if there is none.
func (s *Store) Get(ctx context.Context, number relay.MSISDN) (Result, error) {
	const query = `
		SELECT doc
		FROM lookup
		WHERE number = $1
		  AND (expires = 0 OR expires > $2)`
	return db.One(ctx, s.db, "lookup", query, db.Doc[Result], number, s.db.Now())
}

// Put caches the result of a number for ttl.
func (s *Store) Put(ctx context.Context, r Result, ttl time.Duration) error {
	return s.db.Run(ctx, "lookup", db.Upsert("lookup", "number", "doc, expires"), r.Number, db.JSON(r), s.db.Now().Add(ttl))
}

// Sweep deletes expired results.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return s.db.SweepExpired(ctx, "lookup", "lookup", "number", "expires", now)
}

const networks db.Documents[Network] = "network"

// PutNetwork saves a row of the simulator's network table.
func (s *Store) PutNetwork(ctx context.Context, n Network) error {
	return networks.Put(ctx, s.db, 0, n.Prefix, n)
}

// DeleteNetwork deletes a row of the simulator's network table. It returns relay.KindNotFound if there
// is none.
func (s *Store) DeleteNetwork(ctx context.Context, prefix string) error {
	return networks.Delete(ctx, s.db, 0, prefix)
}

// Networks returns the simulator's network table, sorted by prefix.
func (s *Store) Networks(ctx context.Context) ([]Network, error) {
	return networks.All(ctx, s.db, 0)
}
