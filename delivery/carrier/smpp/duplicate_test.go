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
	d := newDuplicates(func() time.Time { return now })
	id := d.id(1, []byte("a"))
	if d.id(1, []byte("a")) != id {
		t.Error("a repetition has another id")
	}
	if d.id(2, []byte("a")) == id || d.id(1, []byte("b")) == id {
		t.Error("another sequence number or other octets have the same id")
	}
	id = d.id(1, []byte("a"))
	now = now.Add(duplicateWindow + 1)
	if d.id(1, []byte("a")) == id {
		t.Error("a repetition after the window has the same id")
	}
	if session1, session2 := newDuplicates(d.now), newDuplicates(d.now); session1.id(1, []byte("a")) == session2.id(1, []byte("a")) {
		t.Error("PDUs of two sessions have the same id")
	}
}

func TestRememberedPDUsAreBounded(t *testing.T) {
	d := newDuplicates(time.Now)
	d.limit = 10
	id := d.id(1, []byte("a"))
	for n := uint32(2); n <= 12; n++ {
		d.id(n, []byte("a"))
	}
	if d.id(1, []byte("a")) != id {
		t.Error("PDU 1 has another id after 11 other PDUs, want the same id")
	}
	for n := uint32(13); n <= 1000; n++ {
		d.id(n, []byte("a"))
		if len(d.recent)+len(d.older) > 20 {
			t.Fatalf("%d PDUs are remembered, want at most 20", len(d.recent)+len(d.older))
		}
	}
	if d.id(1, []byte("a")) == id {
		t.Error("PDU 1 has the same id after 999 other PDUs, want another id")
	}
}

// FuzzReadPDU checks that readPDU returns the octets of a stream in order.
func FuzzReadPDU(f *testing.F) {
	f.Add(frameOf(f, deliverSM, 0, 1, message("hello")))
	f.Add([]byte{0, 0, 0, 4, 0, 0, 0, 5, 1, 0, 0, 0, 16})
	f.Add([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		reader := bufio.NewReader(bytes.NewReader(stream))
		remaining := stream
		for {
			raw, err := readPDU(reader)
			_, badLength := errors.AsType[*lengthError](err)
			if err != nil && (!badLength || errors.Is(err, errFraming)) {
				return
			}
			if len(raw) < 4 || len(raw) > maxPDU || !bytes.HasPrefix(remaining, raw) {
				t.Fatalf("the PDU %x is invalid or not the beginning of %x", raw, remaining)
			}
			if len(raw) == maxPDU && badLength {
				return // the skipped octets are unknown here
			}
			remaining = remaining[len(raw):]
		}
	})
}
