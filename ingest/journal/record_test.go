package journal

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestEveryFlippedBitIsDetected(t *testing.T) {
	rec := appendRecord(nil, []byte("payload"), time.Unix(1, 2))
	numberRecords(rec, 3, 4, 0)
	got, n, err := parseRecord(rec, 4)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the length", n, len(rec))
	relaytest.Equal(t, "the record", got, Record{Seq: 3, Time: time.Unix(1, 2), Payload: []byte("payload")})
	for bit := range len(rec) * 8 {
		bad := bytes.Clone(rec)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, _, err := parseRecord(bad, 4); !errors.As(err, new(damage)) {
			t.Errorf("error after flipping bit %d = %v, want damage", bit, err)
		}
		if inChecksum := bit/8 >= 4 && bit/8 < 8; !inChecksum && checksum(bad, 4) == checksum(rec, 4) {
			t.Errorf("the checksum does not cover bit %d", bit)
		}
	}
	if _, _, err := parseRecord(rec, 5); err == nil {
		t.Error("no error for a record of another segment")
	}
}
