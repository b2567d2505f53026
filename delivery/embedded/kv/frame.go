package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// A file of the store is a header and then frames. A frame is what one group
// commit wrote: it is synced before the next one is written, so a good frame
// behind a bad one proves that the bad one was once acknowledged.
//
//	header: magic[8] generation[8] base[8] crc32c[4]
//	frame:  crc32c[4] length[4] sequence[8] payload[length]
//
// All numbers are little-endian. The checksum of a frame covers everything
// behind it. Sequences count frames over all logs without a gap.
const (
	logMagic   = "PSKVLOG1"
	snapMagic  = "PSKVSNP1"
	headerSize = 28
	frameHead  = 16
	maxFrame   = math.MaxInt32
)

var errFrame = errors.New("damaged frame")

// fileHeader says which generation a file is of and after which frame it starts.
type fileHeader struct {
	magic      string
	generation uint64
	base       uint64
}

func castagnoli(b []byte) uint32 {
	return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
}

func (h fileHeader) encode() []byte {
	b := make([]byte, 0, headerSize)
	b = append(b, h.magic...)
	b = binary.LittleEndian.AppendUint64(b, h.generation)
	b = binary.LittleEndian.AppendUint64(b, h.base)
	return binary.LittleEndian.AppendUint32(b, castagnoli(b))
}

func parseHeader(b []byte, magic string) (fileHeader, error) {
	if len(b) < headerSize || string(b[:8]) != magic {
		return fileHeader{}, fmt.Errorf("not a %s file", magic)
	}
	if castagnoli(b[:24]) != binary.LittleEndian.Uint32(b[24:]) {
		return fileHeader{}, errors.New("damaged file header at offset 0")
	}
	return fileHeader{magic, binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])}, nil
}

// appendFrame adds the frame of a payload to b.
func appendFrame(b []byte, seq uint64, payload []byte) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint64(b, seq)
	b = append(b, payload...)
	binary.LittleEndian.PutUint32(b[start:], castagnoli(b[start+4:]))
	return b
}

// parseFrame reads the frame at the beginning of b. The payload aliases b.
func parseFrame(b []byte) (seq uint64, payload []byte, size int, err error) {
	if len(b) < frameHead {
		return 0, nil, 0, errFrame
	}
	n := int(binary.LittleEndian.Uint32(b[4:]))
	if n == 0 || n > maxFrame || n > len(b)-frameHead {
		return 0, nil, 0, errFrame
	}
	size = frameHead + n
	if castagnoli(b[4:size]) != binary.LittleEndian.Uint32(b) {
		return 0, nil, 0, errFrame
	}
	return binary.LittleEndian.Uint64(b[8:]), b[frameHead:size], size, nil
}

// findFrame looks for a good frame with a sequence of at least from, at any
// offset of b, and returns its offset or -1.
func findFrame(b []byte, from uint64) int {
	for o := 0; o+frameHead < len(b); o++ {
		n := int(binary.LittleEndian.Uint32(b[o+4:]))
		if n == 0 || n > len(b)-o-frameHead {
			continue
		}
		seq := binary.LittleEndian.Uint64(b[o+8:])
		if seq < from || seq-from > uint64(len(b)) {
			continue
		}
		if _, _, _, err := parseFrame(b[o:]); err == nil {
			return o
		}
	}
	return -1
}
