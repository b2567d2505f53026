package smpp

import (
	"bufio"
	"bytes"
	"errors"
	"testing"
	"time"
)

func TestARepetitionWithinTheWindowHasTheSameID(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := newDuplicates(func() time.Time { return now })
	first := r.id(1, []byte("a"))
	if r.id(1, []byte("a")) != first {
		t.Error("a repetition has another id")
	}
	if r.id(2, []byte("a")) == first || r.id(1, []byte("b")) == first {
		t.Error("another sequence number or other octets have the same id")
	}
	first = r.id(1, []byte("a"))
	now = now.Add(duplicateWindow + 1)
	if r.id(1, []byte("a")) == first {
		t.Error("a repetition after the window has the same id")
	}
	if other := newDuplicates(r.now); other.id(1, []byte("a")) == newDuplicates(r.now).id(1, []byte("a")) {
		t.Error("PDUs of two sessions have the same id")
	}
}

func TestRememberedPDUsAreBounded(t *testing.T) {
	r := newDuplicates(time.Now)
	r.limit = 10
	first := r.id(1, []byte("a"))
	for n := uint32(2); n <= 12; n++ {
		r.id(n, []byte("a"))
	}
	if r.id(1, []byte("a")) != first {
		t.Error("one of the last ten PDUs has another id")
	}
	for n := uint32(13); n <= 1000; n++ {
		r.id(n, []byte("a"))
		if len(r.recent)+len(r.older) > 20 {
			t.Fatalf("%d PDUs are remembered, want at most 20", len(r.recent)+len(r.older))
		}
	}
	if r.id(1, []byte("a")) == first {
		t.Error("a PDU before the last ten has the same id")
	}
}

// FuzzReadPDU checks that the PDUs of a stream are its octets in order.
func FuzzReadPDU(f *testing.F) {
	f.Add(frameOf(f, deliverSM, 0, 1, message("hello")))
	f.Add([]byte{0, 0, 0, 4, 0, 0, 0, 5, 1, 0, 0, 0, 16})
	f.Add([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		in := bufio.NewReader(bytes.NewReader(stream))
		rest := stream
		for {
			raw, err := readPDU(in)
			_, strange := errors.AsType[*lengthError](err)
			if err != nil && (!strange || errors.Is(err, errFraming)) {
				return
			}
			if len(raw) < 4 || len(raw) > maxPDU || !bytes.HasPrefix(rest, raw) {
				t.Fatalf("the PDU %x is not the beginning of %x", raw, rest)
			}
			if len(raw) == maxPDU && strange {
				return // the skipped octets are unknown here
			}
			rest = rest[len(raw):]
		}
	})
}
