package smpp

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock/penstock/decoders/smpp"
)

// maxStrange is how many PDUs in a row may have a length that makes no sense.
const maxStrange = 10

// handle answers a PDU, or sees to it that it is. Its error ends the session.
func (s *session) handle(ctx context.Context, h smpp.Header, raw []byte) error {
	switch h.Command {
	case smpp.DeliverSM, smpp.DataSM:
		s.accept(ctx, h, raw)
	case smpp.EnquireLink:
		s.send(answerTo(h, statusOK))
	case smpp.Unbind:
		return errKicked
	case smpp.Unbind.Answer():
		return errUnbound
	case smpp.SubmitSM.Answer(), smpp.GenericNack:
		s.answered(h, raw)
	case smpp.AlertNotification: // nothing waits for it, and it has no answer
	default:
		if !h.Command.Response() {
			s.accept(ctx, h, raw)
		}
	}
	return nil
}

// unframed keeps a PDU whose length makes no sense.
func (s *session) unframed(ctx context.Context, h smpp.Header, raw []byte, err error) error {
	s.strange++
	s.accept(ctx, h, raw)
	if errors.Is(err, errLost) || s.strange > maxStrange {
		return fmt.Errorf("read: %w", err)
	}
	return nil
}

// accept has a PDU accepted in its turn, and answered in the background once it
// is. It waits while too many are under way.
func (s *session) accept(ctx context.Context, h smpp.Header, raw []byte) {
	select {
	case <-s.stopping:
		s.send(answerTo(h, statusTemporary))
		return
	default:
	}
	select {
	case s.slots <- struct{}{}:
	case <-s.stopping:
		s.send(answerTo(h, statusTemporary))
		return
	}
	s.status.inFlight.Add(1)
	a := Arrival{Carrier: s.o.Name, ID: s.repeats.id(h.Sequence, raw), PDU: raw}
	d, fault := smpp.ParseDelivery(raw)
	a.Receipt = fault == nil && d.IsReceipt()
	// What is under way is answered also when the client is stopped meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.AcceptTimeout)
	wait, err := s.o.Accept(ctx, a)
	go func() {
		defer func() { cancel(); s.status.inFlight.Add(-1); <-s.slots }()
		if err == nil {
			err = wait(ctx)
		}
		s.send(answerTo(h, s.verdict(a, fault, err)))
	}()
}

// verdict counts what became of an arrival and returns the status of its answer.
func (s *session) verdict(a Arrival, fault, err error) uint32 {
	if fault != nil {
		s.status.malformed.Add(1)
		if !s.complained.Swap(true) { // the events have the others
			s.o.Logger.Warn("a PDU cannot be read", "error", fault)
		}
	}
	if err != nil {
		s.status.refused.Add(1)
		if !s.status.refusing.Swap(true) { // the SMSC comes again and again
			s.o.Logger.Error("what arrives is not accepted", "error", err)
		}
		return statusTemporary
	}
	if s.status.refusing.Swap(false) {
		s.o.Logger.Info("what arrives is accepted again")
	}
	switch {
	case fault != nil:
		return statusOf(fault)
	case a.Receipt:
		s.status.receipts.Add(1)
	default:
		s.status.messages.Add(1)
	}
	return statusOK
}
