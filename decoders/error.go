package decoders

import (
	"fmt"
	"strings"
)

// Error is the reason why bytes cannot be decoded or encoded, with the place.
type Error struct {
	Format string // "chirpstack-v4", "cayenne_lpp", "json"
	Field  string // path of the field, with dots between names; empty for the whole input
	Offset int    // bytes from the start of the input; -1 if unknown
	Reason string
}

// Error returns all known parts, such as
// "cayenne_lpp: channel_3: offset 4: unknown type 0x99".
func (e *Error) Error() string {
	parts := []string{e.Format}
	if e.Field != "" {
		parts = append(parts, e.Field)
	}
	if e.Offset >= 0 {
		parts = append(parts, fmt.Sprintf("offset %d", e.Offset))
	}
	return strings.Join(append(parts, e.Reason), ": ")
}
