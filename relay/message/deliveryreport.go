package message

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay/outbox"
)

// reports returns the deliveries that report a message's state. A message that
// the network reports was accepted before; that is reported too, because the
// receipt may arrive before the carrier's answer. Each code is reported once: it
// is part of the delivery's id.
func (h *ReceiptHandler) reports(m *Message) ([]outbox.Delivery, error) {
	code, part := m.Code()
	if code == 0 || m.Report.URL == "" {
		return nil, nil
	}
	codes := []Code{code}
	if code == CodeDelivered || code == CodeBuffered || code == CodeUndelivered {
		codes = []Code{CodeAccepted, code}
	}
	var ds []outbox.Delivery
	for _, c := range codes {
		d, err := h.report(m, c, part)
		if err != nil {
			return nil, err
		}
		ds = append(ds, d)
	}
	return ds, nil
}

func (h *ReceiptHandler) report(m *Message, c Code, part int) (outbox.Delivery, error) {
	p := &m.Parts[part]
	report := DeliveryReport{Code: c, At: p.ChangedAt, Line: p.Report}
	if report.Line == "" || c == CodeAccepted || c == CodeRejected {
		report.Line = m.receiptLine(c, p)
	}
	url, err := m.Expand(report)
	if err != nil {
		return outbox.Delivery{}, err
	}
	return outbox.Delivery{
		ID: "dlr-" + m.ID.String() + "-" + strconv.Itoa(int(c)), Account: m.Account, Kind: outbox.KindReport, MessageID: m.ID.String(),
		Originator: m.Originator, Destination: m.Destination, CreatedAt: h.deps.Now(), Trace: m.Trace,
		Request: &outbox.Request{Method: http.MethodGet, URL: url},
	}, nil
}

// receiptLine is the value of %dlr if the network sent none, in the format of
// SMPP 3.4, appendix B, with our id and the first 20 characters of the text.
func (m *Message) receiptLine(c Code, p *Part) string {
	const stamp = "0601021504"
	delivered := "000"
	if c == CodeDelivered {
		delivered = "001"
	}
	fault := "000"
	if c == CodeUndelivered || c == CodeRejected {
		fault = "001"
	}
	text := []rune(p.Text)
	return strings.Join([]string{
		"id:" + m.ID.String(), "sub:001", "dlvrd:" + delivered,
		"submit date:" + m.ReceivedAt.UTC().Format(stamp), "done date:" + p.ChangedAt.UTC().Format(stamp),
		"stat:" + c.receiptStatus(), "err:" + fault, "text:" + string(text[:min(20, len(text))]),
	}, " ")
}

// receiptStatus is the code's name in a receipt line.
func (c Code) receiptStatus() string {
	switch c {
	case CodeDelivered:
		return "DELIVRD"
	case CodeUndelivered:
		return "UNDELIV"
	case CodeBuffered:
		return "ENROUTE"
	case CodeAccepted:
		return "ACCEPTD"
	}
	return "REJECTD"
}
