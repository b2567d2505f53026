package smpp

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linxGnu/gosmpp/pdu"

	"github.com/penstock/penstock/decoders/smpp"
)

// session serves one bound connection. It has a goroutine that reads, one that writes, one that
// sends enquire_link and expires requests, and one for each PDU that is being accepted.
type session struct {
	*link
	o           *Options
	status      *status
	duplicates  *duplicates
	outgoing    chan []byte // PDUs to be written other than submissions
	outstanding *outstanding
	// slots has one value for each PDU that is being accepted.
	slots chan struct{}
	// stopping is closed when the session begins to refuse PDUs.
	stopping chan struct{}
	// unbinding means that an unbind was sent.
	unbinding atomic.Bool
	// malformedLogged means that a PDU that cannot be parsed was logged.
	malformedLogged atomic.Bool
	// ended is closed when reading has stopped.
	ended      chan struct{}
	badLengths int // consecutive PDUs with an invalid length
}

func newSession(c *Client, l *link) *session {
	return &session{
		link: l, o: &c.o, status: &c.status, duplicates: newDuplicates(c.o.Now),
		outgoing: make(chan []byte, 256), outstanding: newOutstanding(c.o.MaxUnwritten), slots: make(chan struct{}, c.o.InFlight),
		stopping: make(chan struct{}), ended: make(chan struct{}),
	}
}

// The errors of a session that ended by an unbind.
var (
	errUnbound     = errors.New("unbound")
	errSMSCUnbound = errors.New("the SMSC has unbound")
)

// run serves the connection until it breaks, the SMSC unbinds, or ctx is done
// and all PDUs in flight have been answered.
func (s *session) run(ctx context.Context) error {
	var writing, keepAlive sync.WaitGroup
	writing.Go(s.write)
	drained := make(chan struct{})
	keepAlive.Go(s.keepAlive)
	stop := context.AfterFunc(ctx, func() { defer close(drained); s.shutdown() })
	header, err := s.read(ctx)
	close(s.ended)
	s.failPending(err) // at once, so that other binds send the requests that were not written
	if stop() {
		s.waitAccepted()
	} else {
		<-drained
	}
	if errors.Is(err, errSMSCUnbound) {
		s.send(responsePDU(header, statusOK))
	}
	keepAlive.Wait()
	close(s.outgoing)
	writing.Wait()
	s.conn.Close()
	return err
}

// shutdown refuses further PDUs and submissions, waits for PDUs in flight and, for half of the
// timeout, for pending responses, and unbinds.
func (s *session) shutdown() {
	close(s.stopping)
	s.outstanding.mu.Lock()
	s.outstanding.closed = true
	s.outstanding.mu.Unlock()
	s.waitAccepted()
	timeout := time.NewTimer(s.o.Timeout / 2)
	defer timeout.Stop()
	for waiting := true; waiting && s.outstanding.count() > 0; {
		select {
		case <-s.outstanding.resolved:
		case <-s.ended:
			waiting = false
		case <-timeout.C:
			waiting = false
		}
	}
	s.unbinding.Store(true)
	s.send(marshal(pdu.NewUnbind()))
	s.setUnbindDeadline()
}

func (s *session) setUnbindDeadline() {
	_ = s.conn.SetReadDeadline(time.Now().Add(s.o.Timeout / 2))
}

// waitAccepted waits until no PDU is being accepted. It occupies all slots.
func (s *session) waitAccepted() {
	for range cap(s.slots) {
		s.slots <- struct{}{}
	}
}

func (s *session) read(ctx context.Context) (smpp.Header, error) {
	for {
		// A link without traffic for the enquire_link interval plus the timeout is dead.
		if !s.unbinding.Load() {
			if err := s.conn.SetReadDeadline(time.Now().Add(s.o.EnquireLink + s.o.Timeout)); err != nil {
				return smpp.Header{}, s.readError(err)
			}
			if s.unbinding.Load() { // set concurrently: keep the shorter deadline
				s.setUnbindDeadline()
			}
		}
		raw, err := readPDU(s.reader)
		h, _ := smpp.ParseHeader(raw) // zero if incomplete
		_, badLength := errors.AsType[*lengthError](err)
		switch {
		case badLength:
			s.badLengths++
			s.accept(ctx, h, raw)
			if errors.Is(err, errFraming) || s.badLengths > maxBadLengths {
				return h, fmt.Errorf("read: %w", err)
			}
			continue
		case err != nil:
			return h, s.readError(err)
		}
		s.badLengths = 0
		if err := s.handle(ctx, h, raw); err != nil {
			return h, err
		}
	}
}

func (s *session) readError(err error) error {
	if s.unbinding.Load() {
		return errUnbound // the response is pending and not needed
	}
	if netErr, ok := errors.AsType[net.Error](err); ok && netErr.Timeout() {
		return fmt.Errorf("the SMSC was silent for %s", s.o.EnquireLink+s.o.Timeout)
	}
	if errors.Is(err, io.EOF) {
		return errors.New("the SMSC has closed the connection")
	}
	return fmt.Errorf("read: %w", err)
}

func (s *session) keepAlive() {
	tick := time.NewTicker(s.o.EnquireLink)
	defer tick.Stop()
	timeouts := time.NewTicker(s.o.AnswerTimeout / 8)
	defer timeouts.Stop()
	for {
		select {
		case <-tick.C:
			s.send(marshal(pdu.NewEnquireLink()))
		case <-timeouts.C:
			s.expirePending()
		case <-s.ended:
			return
		}
	}
}

// maxWrite is the number of octets after which no further PDU is added to a write.
const maxWrite = 32 << 10

// send enqueues a PDU to be written. It must not be called after run has ended.
func (s *session) send(p []byte) { s.outgoing <- p }

// write writes enqueued PDUs, several at once if several are enqueued. After an error it closes
// the connection and discards further PDUs, so that send does not block.
func (s *session) write() {
	broken := false
	var buf []byte
	for {
		buf = buf[:0]
		select {
		case p, ok := <-s.outgoing:
			if !ok {
				return
			}
			buf = append(buf, p...)
		case r := <-s.outstanding.toWrite:
			if !broken {
				buf = r.appendTo(buf)
			}
		}
		if broken {
			continue
		}
		buf = s.appendQueued(buf)
		_ = s.conn.SetWriteDeadline(time.Now().Add(s.o.Timeout))
		if _, err := s.conn.Write(buf); err != nil {
			broken = true
			s.conn.Close()
		}
	}
}

func (s *session) appendQueued(buf []byte) []byte {
	for len(buf) < maxWrite {
		select {
		case p, ok := <-s.outgoing:
			if !ok {
				return buf
			}
			buf = append(buf, p...)
		case r := <-s.outstanding.toWrite:
			buf = r.appendTo(buf)
		default:
			return buf
		}
	}
	return buf
}

const (
	// maxPDU is the size of the largest PDU that is accepted, in octets: a message_payload of
	// 64 KiB, the other fields, and some optional parameters.
	maxPDU = 72 << 10
	// maxDiscard is the size of the largest PDU that is discarded without ending the session.
	maxDiscard = 1 << 20
)

// lengthError is an invalid command_length. Unless it is joined with errFraming, the reader is at
// the start of the next PDU.
type lengthError struct{ length uint32 }

func (e *lengthError) Error() string {
	return fmt.Sprintf("invalid command_length %d", e.length)
}

// errFraming means that the start of the next PDU is unknown.
var errFraming = errors.New("the start of the next PDU is unknown")

// readPDU reads the next PDU. If command_length is invalid, readPDU returns the first octets of the
// PDU, at most maxPDU, and a *lengthError, joined with errFraming if the PDU is longer than
// maxDiscard.
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

func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
