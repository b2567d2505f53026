package smpp

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/smpp"
)

// The statuses of answers (5.1.3).
const (
	statusOK        = uint32(data.ESME_ROK)
	statusTemporary = uint32(data.ESME_RX_T_APPN)
)

// errorStatus returns the status for a PDU that cannot be parsed.
func errorStatus(err error) uint32 {
	e, ok := errors.AsType[*decoders.Error](err)
	if !ok {
		return uint32(data.ESME_RSYSERR)
	}
	switch {
	case e.Field == "command_id":
		return uint32(data.ESME_RINVCMDID)
	case e.Field == "service_type":
		return uint32(data.ESME_RINVSERTYP)
	case strings.HasPrefix(e.Field, "source_addr"):
		return uint32(data.ESME_RINVSRCADR)
	case strings.HasPrefix(e.Field, "destination_addr"):
		return uint32(data.ESME_RINVDSTADR)
	case e.Field == "schedule_delivery_time":
		return uint32(data.ESME_RINVSCHED)
	case e.Field == "validity_period":
		return uint32(data.ESME_RINVEXPIRY)
	case e.Field == "short_message", e.Field == "sm_length":
		return uint32(data.ESME_RINVMSGLEN)
	case e.Field == "tlv":
		return uint32(data.ESME_RINVOPTPARSTREAM)
	}
	return uint32(data.ESME_RINVCMDLEN)
}

// responsePDU returns the response to a PDU: the command's own, or generic_nack
// for an unsupported command or an invalid length.
func responsePDU(h smpp.Header, status uint32) []byte {
	p := newResponse(h)
	p.SetSequenceNumber(int32(h.Sequence))
	raw := marshal(p)
	binary.BigEndian.PutUint32(raw[8:], status) // command_status
	return raw
}

func newResponse(h smpp.Header) pdu.PDU {
	if h.Length >= smpp.HeaderLen && h.Length <= maxPDU {
		switch h.Command {
		case smpp.DeliverSM:
			return pdu.NewDeliverSMResp()
		case smpp.DataSM:
			return pdu.NewDataSMResp()
		case smpp.EnquireLink:
			return pdu.NewEnquireLinkResp()
		case smpp.Unbind:
			return pdu.NewUnbindResp()
		}
	}
	return pdu.NewGenericNack()
}
