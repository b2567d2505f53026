package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// MaxPayload is the maximum size of a payload, in bytes. It bounds the memory that a reader
// allocates for one record, even if the length in the header is damaged.
const MaxPayload = 4 << 20

const headerSize = 24

// Record is one entry of a log.
type Record struct {
	Seq     uint64    // ascending from 1; sequences may be missing, and are never reused
	Time    time.Time // the time of the append, in UTC
	Payload []byte    // the reader's own copy
}

// castagnoli returns the CRC-32C table, which crc32 builds once and replaces by a processor
// instruction where there is one.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// checksum returns the checksum of a record without its checksum field. The salt differs
// between segments, so that neither a record inside a payload nor an old block of the disk
// is valid in another segment.
func checksum(rec []byte, salt uint32) uint32 {
	crc := crc32.Update(salt, castagnoli(), rec[:4])
	return crc32.Update(crc, castagnoli(), rec[8:])
}

// appendRecord appends a record without sequence and checksum to buf. numberRecords
// sets both when the position of the record in the log is known.
func appendRecord(buf, payload []byte, t time.Time) []byte {
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(payload)))
	buf = append(buf, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(t.UnixNano()))
	return append(buf, payload...)
}

// numberRecords sets the sequences of the records in buf, starting with firstSeq, and their
// checksums. It returns index entries for buf at an offset in the segment.
func numberRecords(buf []byte, firstSeq uint64, salt uint32, offset int64) (index []indexEntry) {
	for seq, off := firstSeq, 0; off < len(buf); seq++ {
		end := off + headerSize + int(binary.LittleEndian.Uint32(buf[off:]))
		rec := buf[off:end]
		binary.LittleEndian.PutUint64(rec[8:], seq)
		binary.LittleEndian.PutUint32(rec[4:], checksum(rec, salt))
		index = addToIndex(index, seq, offset+int64(off))
		off = end
	}
	return index
}

// damage is the error for bytes that are not a valid record. Readers skip damaged bytes, and
// return all other errors.
type damage string

func (d damage) Error() string { return string(d) }

func recordSize(b []byte) (int, error) {
	if len(b) < headerSize {
		return 0, damage("cut inside the header")
	}
	n := binary.LittleEndian.Uint32(b)
	if n > MaxPayload {
		return 0, damage(fmt.Sprintf("length %d exceeds the limit", n))
	}
	return headerSize + int(n), nil
}

// parseRecord reads the record at the start of b and returns its size. The
// payload aliases b.
func parseRecord(b []byte, salt uint32) (Record, int, error) {
	size, err := recordSize(b)
	if err != nil {
		return Record{}, 0, err
	}
	if len(b) < size {
		return Record{}, 0, damage("cut inside the payload")
	}
	b = b[:size:size]
	if binary.LittleEndian.Uint32(b[4:]) != checksum(b, salt) {
		return Record{}, 0, damage("checksum does not match")
	}
	return Record{
		Seq:     binary.LittleEndian.Uint64(b[8:]),
		Time:    time.Unix(0, int64(binary.LittleEndian.Uint64(b[16:]))).UTC(),
		Payload: b[headerSize:],
	}, size, nil
}
