package smpp

import (
	"context"
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

// session is what goes on over one bound connection: one goroutine reads, one
// writes, one asks whether the other side is there, and each PDU that is being
// accepted has its own.
type session struct {
	*link
	o       *Options
	status  *status
	repeats *repeats
	out     chan outgoing
	debts   *debts
	// slots holds one for each PDU that is being accepted.
	slots chan struct{}
	// stopping is closed when nothing more is accepted.
	stopping chan struct{}
	// leaving says that we have unbound and wait for the answer.
	leaving atomic.Bool
	// complained says that a PDU that cannot be read was mentioned.
	complained atomic.Bool
	// ended is closed when nothing is read any more.
	ended   chan struct{}
	strange int // PDUs in a row whose length makes no sense
}

func newSession(c *Client, l *link) *session {
	return &session{
		link: l, o: &c.o, status: &c.status, repeats: newRepeats(c.o.Now),
		out: make(chan outgoing, 256), debts: newDebts(), slots: make(chan struct{}, c.o.InFlight), stopping: make(chan struct{}), ended: make(chan struct{}),
	}
}

// The ways in which a session ends well.
var (
	errUnbound = errors.New("unbound")
	errKicked  = errors.New("the SMSC has unbound")
)

// run serves the connection until it breaks, the SMSC unbinds, or ctx is done
// and all that was under way is answered.
func (s *session) run(ctx context.Context) error {
	var writing, asking sync.WaitGroup
	writing.Go(s.write)
	drained := make(chan struct{})
	asking.Go(s.ask)
	stop := context.AfterFunc(ctx, func() { defer close(drained); s.drain() })
	last, err := s.read(ctx)
	close(s.ended)
	if stop() {
		s.settle()
	} else {
		<-drained
	}
	if errors.Is(err, errKicked) {
		s.send(answerTo(last, statusOK))
	}
	s.bankrupt(err)
	asking.Wait()
	close(s.out)
	writing.Wait()
	s.conn.Close()
	return err
}

// drain ends the session from our side: nothing more is accepted or submitted,
// what is under way is answered, and then we unbind.
func (s *session) drain() {
	close(s.stopping)
	s.debts.stop()
	s.settle()
	s.collect()
	s.leaving.Store(true)
	s.send(octets(pdu.NewUnbind()))
	s.lastWords()
}

// lastWords bounds how long the answer to our unbind may take.
func (s *session) lastWords() {
	_ = s.conn.SetReadDeadline(time.Now().Add(s.o.Timeout / 2))
}

// collect waits for the answers that the SMSC owes, for as long as an unbind may
// take.
func (s *session) collect() {
	late := time.NewTimer(s.o.Timeout / 2)
	defer late.Stop()
	for s.debts.open() > 0 {
		select {
		case <-s.debts.paid:
		case <-s.ended:
			return
		case <-late.C:
			return
		}
	}
}

// settle waits until nothing is being accepted, and keeps it so.
func (s *session) settle() {
	for range cap(s.slots) {
		s.slots <- struct{}{}
	}
}

// read handles PDUs until one ends the session; that one's header is returned.
func (s *session) read(ctx context.Context) (smpp.Header, error) {
	for {
		raw, err := s.next()
		h, _ := smpp.ParseHeader(raw) // zero when it is not all there
		_, strange := errors.AsType[*lengthError](err)
		switch {
		case strange:
			if err := s.unframed(ctx, h, raw, err); err != nil {
				return h, err
			}
			continue
		case err != nil:
			return h, s.broken(err)
		}
		s.strange = 0
		if err := s.handle(ctx, h, raw); err != nil {
			return h, err
		}
	}
}

// next reads a PDU. A link over which nothing has come for as long as an
// enquire_link may take to be sent and answered is dead.
func (s *session) next() ([]byte, error) {
	if !s.leaving.Load() {
		if err := s.conn.SetReadDeadline(time.Now().Add(s.o.EnquireLink + s.o.Timeout)); err != nil {
			return nil, err
		}
		if s.leaving.Load() { // since then: the shorter deadline must stand
			s.lastWords()
		}
	}
	return readPDU(s.in)
}

// broken says why nothing more can be read.
func (s *session) broken(err error) error {
	if s.leaving.Load() {
		return errUnbound // the answer is owed, and of no use
	}
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		return fmt.Errorf("the SMSC was silent for %s", s.o.EnquireLink+s.o.Timeout)
	}
	if errors.Is(err, io.EOF) {
		return errors.New("the SMSC has closed the connection")
	}
	return fmt.Errorf("read: %w", err)
}

// ask sends enquire_link now and then, and gives up answers that do not come.
func (s *session) ask() {
	tick := time.NewTicker(s.o.EnquireLink)
	defer tick.Stop()
	look := time.NewTicker(s.o.AnswerTimeout / 8)
	defer look.Stop()
	for {
		select {
		case <-tick.C:
			s.send(octets(pdu.NewEnquireLink()))
		case <-look.C:
			s.late()
		case <-s.ended:
			return
		}
	}
}
