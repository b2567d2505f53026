package smpp

import (
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
	p, header := newResponse(h)
	header.CommandStatus, header.SequenceNumber = data.CommandStatusType(status), int32(h.Sequence)
	return marshal(p)
}

func newResponse(h smpp.Header) (pdu.PDU, *pdu.Header) {
	if h.Length >= smpp.HeaderLen && h.Length <= maxPDU {
		switch h.Command {
		case smpp.DeliverSM:
			p := pdu.NewDeliverSMResp().(*pdu.DeliverSMResp)
			return p, &p.Header
		case smpp.DataSM:
			p := pdu.NewDataSMResp().(*pdu.DataSMResp)
			return p, &p.Header
		case smpp.EnquireLink:
			p := pdu.NewEnquireLinkResp().(*pdu.EnquireLinkResp)
			return p, &p.Header
		case smpp.Unbind:
			p := pdu.NewUnbindResp().(*pdu.UnbindResp)
			return p, &p.Header
		}
	}
	p := pdu.NewGenericNack().(*pdu.GenericNack)
	return p, &p.Header
}
