package smpp

import (
	"encoding/hex"
	"hash/maphash"
	"strconv"
	"time"

	cryptorand "crypto/rand"
)

const (
	// duplicateWindow is the time after a PDU within which an identical one is a duplicate.
	duplicateWindow = 5 * time.Minute
	// minRemembered is the minimum number of PDUs remembered.
	minRemembered = 10_000
)

// duplicates assigns ids to the PDUs of a session. A PDU with the same sequence
// number and the same octets as a recent one is a duplicate from an SMSC that
// did not receive our response. An SMSC that reuses sequence numbers takes
// longer than duplicateWindow to do so for the same content.
type duplicates struct {
	session       string
	seed          maphash.Seed
	count         uint64
	recent, older map[uint32]seenPDU // two generations bound the memory used
	limit         int
	now           func() time.Time
}

// seenPDU is a remembered PDU.
type seenPDU struct {
	digest     uint64
	n          uint64
	receivedAt time.Time
}

func newDuplicates(now func() time.Time) *duplicates {
	var name [8]byte
	_, _ = cryptorand.Read(name[:]) // never fails
	return &duplicates{
		session: hex.EncodeToString(name[:]), seed: maphash.MakeSeed(), recent: make(map[uint32]seenPDU),
		limit: minRemembered, now: now,
	}
}

// id returns the id of a PDU. Not safe for concurrent use.
func (d *duplicates) id(sequence uint32, pdu []byte) string {
	digest, now := maphash.Bytes(d.seed, pdu), d.now()
	earlier, known := d.recent[sequence]
	if !known {
		earlier, known = d.older[sequence]
	}
	if !known || earlier.digest != digest || now.Sub(earlier.receivedAt) > duplicateWindow {
		d.count++
		earlier = seenPDU{digest: digest, n: d.count, receivedAt: now}
		d.remember(sequence, earlier)
	}
	return d.session + "-" + strconv.FormatUint(earlier.n, 10)
}

func (d *duplicates) remember(sequence uint32, s seenPDU) {
	if len(d.recent) >= d.limit {
		d.older, d.recent = d.recent, make(map[uint32]seenPDU, d.limit)
	}
	d.recent[sequence] = s
}
