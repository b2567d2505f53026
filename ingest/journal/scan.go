package journal

import (
	"cmp"
	"encoding/binary"
)

// indexInterval is the distance between two entries of a segment's index, in bytes.
const indexInterval = 64 << 10

// indexEntry is the offset of a record in a segment.
type indexEntry struct {
	seq uint64
	off int64
}

type scanResult struct {
	size    int64        // bytes up to the end of the last valid record or of the last gap
	lastSeq uint64       // the last valid record's sequence; the segment's firstSeq-1 if it has no records
	oldest  int64        // the time of the first record, Unix ns; 0 if there are no records
	newest  int64        // the latest time of a record, Unix ns
	index   []indexEntry // empty if there are no records
	gaps    []Gap
	tail    string // reason why the bytes after size are invalid; empty if there are none
}

// extend adds a gap after the last valid record, because acknowledged records up to limit are
// missing. The gap ends at size, and is empty if the file ends earlier.
func (r *scanResult) extend(name segmentName, size int64, limit uint64) {
	size = max(size, r.size)
	r.gaps = append(r.gaps, Gap{name.String(), r.size, size - r.size, r.lastSeq + 1, limit, cmp.Or(r.tail, missingReason)})
	r.size = size
}

// scan reads the segment name from data. Sequences must be contiguous and at most limit, so an
// intact record with another sequence counts as damaged.
func scan(data []byte, name segmentName, limit uint64) scanResult {
	r := scanResult{lastSeq: name.firstSeq - 1}
	for off := 0; off < len(data); {
		rec, n, err := parseRecord(data[off:], name.salt)
		if err == nil && rec.Seq == r.lastSeq+1 && rec.Seq <= limit {
			if len(r.index) == 0 {
				r.oldest = rec.Time.UnixNano()
			}
			r.newest = max(r.newest, rec.Time.UnixNano())
			r.index = addToIndex(r.index, rec.Seq, int64(off))
			off += n
			r.lastSeq, r.size = rec.Seq, int64(off)
			continue
		}
		reason := "record out of sequence"
		if err != nil {
			reason = err.Error()
		}
		nextOff, seq := resync(data, off, name.salt, r.lastSeq, limit)
		if nextOff < 0 {
			r.tail = reason
			break
		}
		r.gaps = append(r.gaps, Gap{name.String(), int64(off), int64(nextOff - off), r.lastSeq + 1, seq - 1, reason})
		r.lastSeq, off = seq-1, nextOff
	}
	return r
}

func addToIndex(index []indexEntry, seq uint64, off int64) []indexEntry {
	if n := len(index); n > 0 && off-index[n-1].off < indexInterval {
		return index
	}
	return append(index, indexEntry{seq, off})
}

// resync searches for the next valid record after the damaged one at start. It returns the
// offset and sequence of the record, or -1 and 0. The number of skipped bytes limits the
// sequence, which excludes nearly all candidates before their checksum is computed.
func resync(data []byte, start int, salt uint32, lastSeq, limit uint64) (int, uint64) {
	for off := start + 1; off+headerSize <= len(data); off++ {
		seq := binary.LittleEndian.Uint64(data[off+8:])
		room := uint64(off-start) / headerSize
		if seq <= lastSeq || seq-lastSeq > room+1 || seq > limit {
			continue
		}
		if _, _, err := parseRecord(data[off:], salt); err == nil {
			return off, seq
		}
	}
	return -1, 0
}
