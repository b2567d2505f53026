package decoders

import (
	"fmt"
	"strings"
)

// Error is the place where bytes could not be read, and the reason.
type Error struct {
	Format string // "chirpstack-v4", "cayenne_lpp", "json"
	Field  string // path of the field, dots between names; empty for the whole
	Offset int    // bytes from the start of what was read; -1 when unknown
	Reason string
}

// Error gives all parts that are known, as
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
