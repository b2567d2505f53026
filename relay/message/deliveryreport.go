package message

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// reports returns the deliveries that report a message's state and those before
// it: the receipt may arrive before the carrier's answer, and a crash may have
// prevented an earlier report. Each code is reported once: it is part of the
// delivery's id.
func (h *ReceiptHandler) reports(m *Message) ([]outbox.Delivery, error) {
	code, part := m.Code()
	if code == 0 || m.Report.URL == "" {
		return nil, nil
	}
	p := &m.Parts[part]
	var ds []outbox.Delivery
	add := func(c Code, p *Part) error {
		d, err := h.report(m, c, p)
		ds = append(ds, d)
		return err
	}
	var err error
	if code == CodeDelivered || code == CodeBuffered || code == CodeUndelivered {
		err = add(CodeAccepted, p)
	}
	buffered := slices.IndexFunc(m.Parts, func(b Part) bool { return !b.BufferedAt.IsZero() })
	before := buffered >= 0 && (code == CodeDelivered || !m.Parts[buffered].BufferedAt.After(p.ChangedAt))
	if before && (code == CodeDelivered || code == CodeUndelivered) {
		err = errors.Join(err, add(CodeBuffered, &m.Parts[buffered]))
	}
	return ds, errors.Join(err, add(code, p))
}

func (h *ReceiptHandler) report(m *Message, c Code, p *Part) (outbox.Delivery, error) {
	report := DeliveryReport{Code: c, At: p.ChangedAt, Line: p.Report}
	if c == CodeBuffered && p.State != Buffered {
		report.At, report.Line = p.BufferedAt, ""
	}
	if report.Line == "" || c == CodeAccepted || c == CodeRejected {
		report.Line = m.receiptLine(c, p.Text, report.At)
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
func (m *Message) receiptLine(c Code, part string, done time.Time) string {
	const stamp = "0601021504"
	delivered := "000"
	if c == CodeDelivered {
		delivered = "001"
	}
	fault := "000"
	if c == CodeUndelivered || c == CodeRejected {
		fault = "001"
	}
	text := []rune(part)
	return strings.Join([]string{
		"id:" + m.ID.String(), "sub:001", "dlvrd:" + delivered,
		"submit date:" + m.ReceivedAt.UTC().Format(stamp), "done date:" + done.UTC().Format(stamp),
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
