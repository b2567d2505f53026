package smpp

import (
	"encoding/hex"
	"hash/maphash"
	"strconv"
	"time"

	cryptorand "crypto/rand"
)

const (
	// repeatWindow is how long after a PDU the same one is a repetition.
	repeatWindow = 5 * time.Minute
	// repeatMemory is how many PDUs are remembered at least.
	repeatMemory = 10_000
)

// repeats gives the PDUs of a session their ids. A sequence number belongs to
// one PDU of a session; the same with the same octets comes from an SMSC that
// has not seen our answer. An SMSC that uses numbers again for another message
// with the same words has minutes to do so.
type repeats struct {
	session    string
	seed       maphash.Seed
	count      uint64
	young, old map[uint32]seenPDU // two generations bound the memory
	limit      int
	now        func() time.Time
}

// seenPDU is what is remembered of a PDU.
type seenPDU struct {
	digest uint64
	n      uint64
	at     time.Time
}

func newRepeats(now func() time.Time) *repeats {
	var name [8]byte
	_, _ = cryptorand.Read(name[:]) // never fails
	return &repeats{
		session: hex.EncodeToString(name[:]), seed: maphash.MakeSeed(), young: make(map[uint32]seenPDU),
		limit: repeatMemory, now: now,
	}
}

// id returns the id of a PDU. It is not for concurrent use.
func (r *repeats) id(sequence uint32, pdu []byte) string {
	digest, now := maphash.Bytes(r.seed, pdu), r.now()
	before, known := r.young[sequence]
	if !known {
		before, known = r.old[sequence]
	}
	if !known || before.digest != digest || now.Sub(before.at) > repeatWindow {
		r.count++
		before = seenPDU{digest: digest, n: r.count, at: now}
		r.remember(sequence, before)
	}
	return r.session + "-" + strconv.FormatUint(before.n, 10)
}

func (r *repeats) remember(sequence uint32, s seenPDU) {
	if len(r.young) >= r.limit {
		r.old, r.young = r.young, make(map[uint32]seenPDU, r.limit)
	}
	r.young[sequence] = s
}
