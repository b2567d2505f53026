package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A record is one top-level command or one EXEC: its time in microseconds since
// 1970, and the writes it led to, in their order. A write keeps whether it was
// answered with an error, because such a command may have had an effect and a
// replay must come to the same end.
//
//	record: micros[8] length[4] write...
//	write:  flag[1] argc[uvarint] (length[uvarint] bytes)...
const recordHead = 12

// maxArgs bounds the arguments of a request and of a logged write.
const maxArgs = 1 << 20

var errRecord = errors.New("damaged record")

// write is one logged command, the name first.
type write struct {
	failed bool
	args   []string
}

type record struct {
	micros int64
	writes []write
}

func appendRecord(b []byte, micros int64, writes []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(micros))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(writes)))
	return append(b, writes...)
}

func appendWrite(b []byte, failed bool, args []string) []byte {
	flag := byte(0)
	if failed {
		flag = 1
	}
	b = append(b, flag)
	b = binary.AppendUvarint(b, uint64(len(args)))
	for _, a := range args {
		b = binary.AppendUvarint(b, uint64(len(a)))
		b = append(b, a...)
	}
	return b
}

// parseRecords reads every record of a frame's payload.
func parseRecords(b []byte) ([]record, error) {
	var out []record
	for at := 0; at < len(b); {
		if len(b)-at < recordHead {
			return nil, fmt.Errorf("%w: short header at byte %d of the frame", errRecord, at)
		}
		n := int(binary.LittleEndian.Uint32(b[at+8:]))
		if n > len(b)-at-recordHead {
			return nil, fmt.Errorf("%w: length %d at byte %d of the frame", errRecord, n, at)
		}
		writes, err := parseWrites(b[at+recordHead : at+recordHead+n])
		if err != nil {
			return nil, fmt.Errorf("%w at byte %d of the frame", err, at)
		}
		out = append(out, record{int64(binary.LittleEndian.Uint64(b[at:])), writes})
		at += recordHead + n
	}
	return out, nil
}

func parseWrites(b []byte) ([]write, error) {
	var out []write
	for len(b) > 0 {
		w := write{failed: b[0] == 1}
		argc, n := binary.Uvarint(b[1:])
		if n <= 0 || argc == 0 || argc > uint64(len(b)) {
			return nil, errRecord
		}
		b = b[1+n:]
		for range argc {
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return nil, errRecord
			}
			w.args = append(w.args, string(b[n:n+int(size)]))
			b = b[n+int(size):]
		}
		out = append(out, w)
	}
	return out, nil
}
