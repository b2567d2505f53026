package relay

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

// NewID returns an unguessable identifier of 26 lower-case letters and digits.
// Identifiers made later sort later, to the millisecond.
func NewID(now time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // never fails, see crypto/rand
	return idEncoding().EncodeToString(b[:])
}

func idEncoding() *base32.Encoding {
	return base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)
}
