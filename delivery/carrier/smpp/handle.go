package smpp

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock/penstock/decoders/smpp"
)

// maxBadLengths is the largest number of consecutive PDUs with an invalid
// length.
const maxBadLengths = 10

// handle responds to a PDU or starts its acceptance. An error ends the session.
func (s *session) handle(ctx context.Context, h smpp.Header, raw []byte) error {
	switch h.Command {
	case smpp.DeliverSM, smpp.DataSM:
		s.accept(ctx, h, raw)
	case smpp.EnquireLink:
		s.send(responsePDU(h, statusOK))
	case smpp.Unbind:
		return errSMSCUnbound
	case smpp.Unbind.Answer():
		return errUnbound
	case smpp.SubmitSM.Answer(), smpp.GenericNack:
		s.handleResponse(h, raw)
	case smpp.AlertNotification: // unused, and has no response
	default:
		if !h.Command.Response() {
			s.accept(ctx, h, raw)
		}
	}
	return nil
}

// acceptBadLength accepts a PDU with an invalid length.
func (s *session) acceptBadLength(ctx context.Context, h smpp.Header, raw []byte, err error) error {
	s.badLengths++
	s.accept(ctx, h, raw)
	if errors.Is(err, errFraming) || s.badLengths > maxBadLengths {
		return fmt.Errorf("read: %w", err)
	}
	return nil
}

// accept accepts PDUs in order and responds in the background. It blocks while
// too many are in flight.
func (s *session) accept(ctx context.Context, h smpp.Header, raw []byte) {
	select {
	case <-s.stopping:
		s.send(responsePDU(h, statusTemporary))
		return
	default:
	}
	select {
	case s.slots <- struct{}{}:
	case <-s.stopping:
		s.send(responsePDU(h, statusTemporary))
		return
	}
	s.status.inFlight.Add(1)
	a := Arrival{Carrier: s.o.Carrier, Bind: s.o.Name, ID: s.duplicates.id(h.Sequence, raw), PDU: raw}
	d, fault := smpp.ParseDelivery(raw)
	a.Receipt = fault == nil && d.IsReceipt()
	// PDUs in flight get a response even if the client is stopped meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.AcceptTimeout)
	wait, err := s.o.Accept(ctx, a)
	go func() {
		defer func() { cancel(); s.status.inFlight.Add(-1); <-s.slots }()
		if err == nil {
			err = wait(ctx)
		}
		s.send(responsePDU(h, s.responseStatus(a, fault, err)))
	}()
}

// responseStatus counts an arrival and returns the status of its response.
func (s *session) responseStatus(a Arrival, fault, err error) uint32 {
	if fault != nil {
		s.status.malformed.Add(1)
		if !s.malformedLogged.Swap(true) { // the others are recorded as events
			s.o.Logger.Warn("cannot parse PDU", "error", fault)
		}
	}
	if err != nil {
		s.status.refused.Add(1)
		if !s.status.refusing.Swap(true) { // the SMSC retries repeatedly
			s.o.Logger.Error("inbound PDUs are refused", "error", err)
		}
		return statusTemporary
	}
	if s.status.refusing.Swap(false) {
		s.o.Logger.Info("inbound PDUs are accepted again")
	}
	switch {
	case fault != nil:
		return errorStatus(fault)
	case a.Receipt:
		s.status.receipts.Add(1)
	default:
		s.status.messages.Add(1)
	}
	return statusOK
}
