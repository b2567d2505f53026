package relay

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// AccountID is the number of an account: the value of message_meta.account_id.
type AccountID int64

// String returns the number in decimal.
func (id AccountID) String() string { return strconv.FormatInt(int64(id), 10) }

// NewID returns an unguessable identifier of 26 lower-case letters and digits.
// An identifier sorts after the earlier identifiers of the process, unless the clock is set back by
// maxStepBack or more. Identifiers of different processes sort by time, to the millisecond.
func NewID(now time.Time) string {
	b := newID(now)
	return base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding).EncodeToString(b[:])
}

// NewUUID returns an unguessable UUID of version 7 (RFC 9562, section 5.7). UUIDs have the same order
// as the identifiers of NewID.
func NewUUID(now time.Time) string {
	b := newID(now)
	// The last 16 bits of the tick follow the version (12 bits) and the variant (4 bits).
	tick := binary.BigEndian.Uint16(b[6:])
	binary.BigEndian.PutUint16(b[6:], 0x7000|tick>>4)
	b[8] = 0x80 | byte(tick&0x0f)<<2 | b[8]&0x03
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newID returns a tick in 64 bits, of which the first 48 are milliseconds, and 64 random bits.
func newID(now time.Time) (b [16]byte) {
	binary.BigEndian.PutUint64(b[:8], uint64(ticks.nextTick(now)))
	_, _ = rand.Read(b[8:]) // never fails, see crypto/rand
	return b
}

const (
	// ticksPerMilli is the number of ticks in a millisecond. A process that makes more identifiers
	// in a millisecond uses ticks of the next millisecond.
	ticksPerMilli = 1 << 16
	// maxStepBack is the smallest step back of the clock that breaks the order of identifiers.
	maxStepBack = time.Second
)

// ticks orders the identifiers of this process. It is a global because all callers share the order.
var ticks ticker //nolint:gochecknoglobals // see above

// ticker returns increasing ticks. A tick is a time since 1970 in units of 1/ticksPerMilli
// milliseconds. It is safe for concurrent use.
type ticker struct {
	mu       sync.Mutex
	lastTick int64
}

// nextTick returns the tick of now, or the tick after the last one if the tick of now is not later.
func (t *ticker) nextTick(now time.Time) int64 {
	tick := now.UnixMilli()*ticksPerMilli + int64(now.Nanosecond())%1e6*ticksPerMilli/1e6
	t.mu.Lock()
	defer t.mu.Unlock()
	if lead := t.lastTick - tick; lead >= 0 && lead < maxStepBack.Milliseconds()*ticksPerMilli {
		tick = t.lastTick + 1
	}
	t.lastTick = tick
	return tick
}
