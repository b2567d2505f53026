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
	// maxPDU is the largest PDU accepted: a message_payload of 64 KiB, the other
	// fields, and some optional parameters.
	maxPDU = 72 << 10
	// maxDiscard is the largest PDU that is discarded without ending the
	// session.
	maxDiscard = 1 << 20
)

// lengthError is an invalid command_length. The next PDU still begins where this one reports
// that it ends.
type lengthError struct{ length uint32 }

func (e *lengthError) Error() string {
	return fmt.Sprintf("a command_length of %d", e.length)
}

// errFraming means that the start of the next PDU is unknown.
var errFraming = errors.New("lost track of where a PDU begins")

// readPDU reads the next PDU. If its length is invalid, it returns up to maxPDU
// octets of it and a *lengthError.
func readPDU(r *bufio.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	size := max(4, min(int64(length), maxPDU))
	if length > maxDiscard {
		size = smpp.HeaderLen
	}
	raw := make([]byte, size)
	copy(raw, head[:])
	if _, err := io.ReadFull(r, raw[4:]); err != nil {
		return nil, unexpectedEOF(err)
	}
	switch {
	case length > maxDiscard:
		return raw, errors.Join(&lengthError{length}, errFraming)
	case length > maxPDU:
		if _, err := r.Discard(int(length) - len(raw)); err != nil {
			return nil, unexpectedEOF(err)
		}
		return raw, &lengthError{length}
	case length < smpp.HeaderLen:
		return raw, &lengthError{length}
	}
	return raw, nil
}

// unexpectedEOF converts the error of a stream that ends within a PDU.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
