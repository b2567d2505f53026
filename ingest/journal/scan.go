package journal

import "encoding/binary"

// indexInterval is the distance between two entries of a segment's index, in bytes.
const indexInterval = 64 << 10

// indexEntry is the offset of the record seq.
type indexEntry struct {
	seq uint64
	off int64
}

// badRange is a range of a segment that holds no valid record, and the sequences
// that are missing because of it (none when first > last).
type badRange struct {
	off, end          int64
	firstSeq, lastSeq uint64
	reason            string
}

// survey is the result of scanning a segment.
type survey struct {
	end       int64  // the end of the last valid record
	lastSeq   uint64 // its sequence; one less than the segment's first if there is none
	oldest    int64  // the time of the first record, Unix ns; 0 when there is none
	newest    int64  // the latest time of a record, Unix ns
	index     []indexEntry
	badRanges []badRange // between valid records, in order
	tail      string     // why the bytes after end are invalid; empty if there are none
}

// scan reads a segment with sequences from first to at most limit. They are contiguous, so
// an intact record in the wrong place is refused like a damaged one.
func scan(data []byte, salt uint32, firstSeq, limit uint64) survey {
	s := survey{lastSeq: firstSeq - 1}
	for off := 0; off < len(data); {
		rec, n, err := parseRecord(data[off:], salt)
		if err == nil && rec.Seq == s.lastSeq+1 && rec.Seq <= limit {
			if len(s.index) == 0 {
				s.oldest = rec.Time.UnixNano()
			}
			s.newest = max(s.newest, rec.Time.UnixNano())
			s.index = addToIndex(s.index, rec.Seq, int64(off))
			off += n
			s.lastSeq, s.end = rec.Seq, int64(off)
			continue
		}
		reason := "record out of sequence"
		if err != nil {
			reason = err.Error()
		}
		offset, seq := resync(data, off, salt, s.lastSeq, limit)
		if offset < 0 {
			s.tail = reason
			break
		}
		s.badRanges = append(s.badRanges, badRange{int64(off), int64(offset), s.lastSeq + 1, seq - 1, reason})
		s.lastSeq, off = seq-1, offset
	}
	return s
}

func addToIndex(index []indexEntry, seq uint64, off int64) []indexEntry {
	if n := len(index); n > 0 && off-index[n-1].off < indexInterval {
		return index
	}
	return append(index, indexEntry{seq, off})
}

// resync searches for the next valid record after the bad one at from, and returns its
// offset and sequence, or -1. The skipped bytes limit the sequence of a candidate: that
// excludes nearly all false ones before their checksum is computed.
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
