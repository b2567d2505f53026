package smpp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/penstock/penstock/decoders/smpp"
)

const (
	// maxPDU is the longest PDU that is taken: a message_payload of 64 KiB, the
	// other fields, and some optional parameters.
	maxPDU = 72 << 10
	// maxSkip is the longest one that is read past.
	maxSkip = 1 << 20
)

// lengthError is a command_length that no PDU has. The next PDU begins where
// this one says that it ends.
type lengthError struct{ length uint32 }

func (e *lengthError) Error() string {
	return fmt.Sprintf("a command_length of %d", e.length)
}

// errLost says that nobody can tell where the next PDU begins.
var errLost = errors.New("lost track of where a PDU begins")

// readPDU reads the next PDU. For one of an impossible length it returns what
// there is of it, the first maxPDU octets at most, and a *lengthError.
func readPDU(r *bufio.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	kept := max(4, min(int64(length), maxPDU))
	if length > maxSkip {
		kept = smpp.HeaderLen
	}
	raw := make([]byte, kept)
	copy(raw, head[:])
	if _, err := io.ReadFull(r, raw[4:]); err != nil {
		return nil, whole(err)
	}
	switch {
	case length > maxSkip:
		return raw, errors.Join(&lengthError{length}, errLost)
	case length > maxPDU:
		if _, err := r.Discard(int(length) - len(raw)); err != nil {
			return nil, whole(err)
		}
		return raw, &lengthError{length}
	case length < smpp.HeaderLen:
		return raw, &lengthError{length}
	}
	return raw, nil
}

// whole is the error of a stream that ends within a PDU.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
