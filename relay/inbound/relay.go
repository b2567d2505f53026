package inbound

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/condition"
	"github.com/penstock/penstock/relay/outbox"
)

// Relay forwards the messages to a number or a prefix.
type Relay struct {
	ID      string          `json:"id"` // unique among the account's relays of a kind
	Account relay.AccountID `json:"account"`
	Kind    Kind            `json:"kind"`
	// Number is the whole number of a virtual number, or the prefix of a geographic relay. It
	// is unique among the relays of a kind of all accounts.
	Number string `json:"number"`
	Action Action `json:"action"`
	// Filter is a condition that messages must meet, see CheckFilter; empty for none.
	Filter string `json:"filter,omitempty"`
	// ICCID is the SIM to which the action mvno of a geographic relay delivers.
	ICCID string `json:"iccid,omitempty"`
	// Pace limits the requests to each endpoint of the relay.
	Pace      outbox.Pace `json:"pace,omitzero"`
	UpdatedAt time.Time   `json:"updated_at"`
	// ChangedAt is the time at which RelayService last set the action or the filter; zero if an
	// inventory has set them since.
	ChangedAt time.Time `json:"changed_at,omitzero"`
	// Undecryptable means that the record cannot be decrypted: only the account, the kind, the id and
	// the number are known.
	Undecryptable bool `json:"-"`
}

// String returns the kind and the id: "vmn relay v1".
func (r Relay) String() string { return string(r.Kind) + " relay " + r.ID }

// label returns the kind in words and the id: "the virtual number relay v1".
func (r Relay) label() string { return "the " + r.Kind.words() + " relay " + r.ID }

// Validate checks a relay before it is saved. The fields of the relay.KindInvalid error are
// named as in the inventory: id, number or prefix, action, parameters, filter.
func (r Relay) Validate(checkURL func(string) error) error {
	invalid := func(c rune) bool {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		return !letter && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.'
	}
	if r.ID == "" || len(r.ID) > 64 || strings.ContainsFunc(r.ID, invalid) {
		return relay.Invalid("id", "The id must be 1 to 64 letters, digits, dashes, dots or underscores.")
	}
	field := NumberField(r.Kind)
	if !relay.Digits(r.Number) || len(r.Number) > maxDigits {
		return relay.Invalid(field, "The "+field+" must be 1 to "+strconv.Itoa(maxDigits)+" digits.")
	}
	if err := validateFilter(r.Filter); err != nil {
		return err
	}
	if err := r.Action.Validate(r.Kind, checkURL); err != nil {
		return err
	}
	return r.checkSIM()
}

// NumberField returns the name that interfaces use for the number of a kind of relay.
func NumberField(k Kind) string {
	if k == Geographic {
		return "prefix"
	}
	return "number"
}

func (r *Relay) checkSIM() error {
	if r.Action.Name == MVNO && r.ICCID == "" {
		return relay.Invalid("action", "The action mvno needs a relay that names a SIM.")
	}
	return nil
}

// maxDigits is the length of the longest numbers (E.164).
const maxDigits = 15

// CheckFilter returns an error if a filter does not compile or costs too much. An empty filter is
// valid.
func CheckFilter(source string) error {
	if source == "" {
		return nil
	}
	_, err := condition.CompileFilter(source)
	return err
}

func validateFilter(source string) error {
	if err := CheckFilter(source); err != nil {
		return relay.Invalid("filter", fmt.Sprintf("The filter is not valid: %v.", err))
	}
	return nil
}
