package smpp

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/maphash"
	"strconv"
	"strings"
	"time"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/smpp"
)

// maxBadLengths is the largest number of consecutive PDUs with an invalid length that does not
// end the session.
const maxBadLengths = 10

// acceptTimeout bounds the acceptance of a PDU.
const acceptTimeout = 10 * time.Second

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
		if r := s.outstanding.resolve(h.Sequence); r != nil { // nil for a response to an enquire_link or to an unknown request
			r.done(resultOf(h, raw))
		}
	case smpp.AlertNotification: // unused, and has no response
	default:
		if !h.Command.Response() {
			s.accept(ctx, h, raw)
		}
	}
	return nil
}

// accept accepts PDUs in order and responds in the background. It blocks while too many PDUs are in
// flight.
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
	s.status.update(func(s *Status) { s.InFlight++ })
	p := ReceivedPDU{Carrier: s.o.Carrier, Bind: s.o.Name, ID: s.duplicates.id(h.Sequence, raw), PDU: raw}
	d, parseErr := smpp.ParseDelivery(raw)
	p.Receipt = parseErr == nil && d.IsReceipt()
	// PDUs in flight get a response even if the client is stopped in the meantime.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptTimeout)
	wait, err := s.o.Accept(ctx, p)
	go func() {
		defer func() { cancel(); s.status.update(func(s *Status) { s.InFlight-- }); <-s.slots }()
		if err == nil {
			err = wait(ctx)
		}
		s.send(responsePDU(h, s.responseStatus(p, parseErr, err)))
	}()
}

// responseStatus counts a received PDU and returns the status of its response.
func (s *session) responseStatus(p ReceivedPDU, parseErr, err error) uint32 {
	if parseErr != nil {
		s.status.update(func(s *Status) { s.Malformed++ })
		if !s.malformedLogged.Swap(true) { // logged once; further invalid PDUs are only recorded as events
			s.o.Logger.Warn("cannot parse PDU", "error", parseErr)
		}
	}
	if err != nil {
		s.status.update(func(s *Status) { s.Refused++ })
		if !s.status.refusing.Swap(true) { // logged once, because the SMSC retries repeatedly
			s.o.Logger.Error("inbound PDUs are refused", "error", err)
		}
		return statusTemporary
	}
	if s.status.refusing.Swap(false) {
		s.o.Logger.Info("inbound PDUs are accepted again")
	}
	switch {
	case parseErr != nil:
		return errorStatus(parseErr)
	case p.Receipt:
		s.status.update(func(s *Status) { s.Receipts++ })
	default:
		s.status.update(func(s *Status) { s.Messages++ })
	}
	return statusOK
}

// The statuses of responses (SMPP 3.4, 5.1.3).
const (
	statusOK        = uint32(data.ESME_ROK)
	statusTemporary = uint32(data.ESME_RX_T_APPN)
)

func errorStatus(err error) uint32 {
	e, ok := errors.AsType[*decoders.Error](err)
	if !ok {
		return uint32(data.ESME_RSYSERR)
	}
	for prefix, status := range map[string]data.CommandStatusType{
		"command_id": data.ESME_RINVCMDID, "service_type": data.ESME_RINVSERTYP,
		"source_addr": data.ESME_RINVSRCADR, "destination_addr": data.ESME_RINVDSTADR,
		"schedule_delivery_time": data.ESME_RINVSCHED, "validity_period": data.ESME_RINVEXPIRY,
		"short_message": data.ESME_RINVMSGLEN, "sm_length": data.ESME_RINVMSGLEN, "tlv": data.ESME_RINVOPTPARSTREAM,
	} {
		if strings.HasPrefix(e.Field, prefix) {
			return uint32(status)
		}
	}
	return uint32(data.ESME_RINVCMDLEN)
}

// responsePDU returns the response to a PDU: the response of its command, or generic_nack
// for an unsupported command or an invalid length.
func responsePDU(h smpp.Header, status uint32) []byte {
	p := pdu.NewGenericNack()
	if h.Length >= smpp.HeaderLen && h.Length <= maxPDU {
		switch h.Command {
		case smpp.DeliverSM:
			p = pdu.NewDeliverSMResp()
		case smpp.DataSM:
			p = pdu.NewDataSMResp()
		case smpp.EnquireLink:
			p = pdu.NewEnquireLinkResp()
		case smpp.Unbind:
			p = pdu.NewUnbindResp()
		}
	}
	p.SetSequenceNumber(int32(h.Sequence))
	raw := marshal(p)
	binary.BigEndian.PutUint32(raw[8:], status) // command_status
	return raw
}

const (
	// duplicateWindow is the time after a PDU within which an identical one is a duplicate.
	duplicateWindow = 5 * time.Minute
	// minRemembered is the minimum number of PDUs that are remembered.
	minRemembered = 10_000
)

// duplicates assigns ids to the PDUs of a session. A PDU with the same sequence number and the same
// octets as a recent one is a duplicate: the SMSC did not receive the response. It is assumed that
// an SMSC does not reuse a sequence number for the same content within duplicateWindow.
type duplicates struct {
	session       string
	seed          maphash.Seed
	count         uint64
	recent, older map[uint32]rememberedPDU // two generations bound the memory used
	limit         int
	now           func() time.Time
}

// rememberedPDU is a PDU to which id assigned the number n.
type rememberedPDU struct {
	digest     uint64
	n          uint64
	receivedAt time.Time
}

func newDuplicates(now func() time.Time) *duplicates {
	var name [8]byte
	_, _ = cryptorand.Read(name[:]) // never fails
	return &duplicates{
		session: hex.EncodeToString(name[:]), seed: maphash.MakeSeed(), recent: make(map[uint32]rememberedPDU),
		limit: minRemembered, now: now,
	}
}

// id returns the id of a PDU. It is not safe for concurrent use.
func (d *duplicates) id(sequence uint32, pdu []byte) string {
	digest, now := maphash.Bytes(d.seed, pdu), d.now()
	entry, found := d.recent[sequence]
	if !found {
		entry, found = d.older[sequence]
	}
	if !found || entry.digest != digest || now.Sub(entry.receivedAt) > duplicateWindow {
		d.count++
		entry = rememberedPDU{digest: digest, n: d.count, receivedAt: now}
		if len(d.recent) >= d.limit {
			d.older, d.recent = d.recent, make(map[uint32]rememberedPDU, d.limit)
		}
		d.recent[sequence] = entry
	}
	return d.session + "-" + strconv.FormatUint(entry.n, 10)
}
