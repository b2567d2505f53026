package lookup

import (
	"context"

	"github.com/penstock/penstock/relay"
)

// Code is the outcome of a lookup.
type Code int

// The codes.
const (
	Delivered Code = 0 // the network answered, the subscriber can be reached
	Absent    Code = 1
	Unknown   Code = 2 // no network has such a subscriber
	NoAnswer  Code = 3 // from the network; not charged
)

// Known reports whether the code is one of the codes above.
func (c Code) Known() bool { return c >= Delivered && c <= NoAnswer }

// String returns the code in words, as answers describe it.
func (c Code) String() string {
	switch c {
	case Delivered:
		return "Delivered by the network"
	case Absent:
		return "Absent subscriber"
	case Unknown:
		return "Unknown subscriber"
	case NoAnswer:
		return "No answer from the network"
	}
	return "Unknown code"
}

// Result is the answer about a number.
type Result struct {
	Number  relay.MSISDN `json:"number"`
	Code    Code         `json:"code"`
	MCC     string       `json:"mcc,omitempty"` // 3 digits; empty if unknown
	MNC     string       `json:"mnc,omitempty"` // 2 or 3 digits
	Network string       `json:"network,omitempty"`
	Country string       `json:"country,omitempty"`
	Contact string       `json:"contact,omitempty"` // of the network; may be empty
	IMSI    string       `json:"imsi,omitempty"`    // empty if unknown
	Ported  bool         `json:"ported,omitempty"`
	Roaming bool         `json:"roaming,omitempty"`
}

// Network is a row of the table that the simulator answers from.
type Network struct {
	Prefix  string `json:"prefix"` // digits, country code first
	MCC     string `json:"mcc"`
	MNC     string `json:"mnc"`
	Name    string `json:"name"`
	Country string `json:"country,omitempty"`
}

// Backend queries the networks.
type Backend interface {
	// Find queries one number. A network that does not answer is a result of
	// NoAnswer; relay.KindUnavailable means that no query could be made.
	Find(ctx context.Context, number relay.MSISDN) (Result, error)
}
