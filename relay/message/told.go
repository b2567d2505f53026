package message

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay/outbox"
)

// reports are the deliveries that tell what became of a message so far. Whoever
// the network reports of was accepted before: that is told too, in case that the
// receipt was faster than the carrier's answer. Each code is told once, for the
// code is in the delivery's id.
func (n *Network) reports(m *Message) ([]outbox.Delivery, error) {
	code, part := m.Code()
	if code == 0 || m.Report.URL == "" {
		return nil, nil
	}
	codes := []Code{code}
	if code == CodeDelivered || code == CodeBuffered || code == CodeRejected {
		codes = []Code{CodeAccepted, code}
	}
	var ds []outbox.Delivery
	for _, c := range codes {
		d, err := n.report(m, c, part)
		if err != nil {
			return nil, err
		}
		ds = append(ds, d)
	}
	return ds, nil
}

func (n *Network) report(m *Message, c Code, part int) (outbox.Delivery, error) {
	p := &m.Parts[part]
	told := Told{Code: c, At: p.ChangedAt, Line: p.Report}
	if told.Line == "" || c == CodeAccepted || c == CodeRefused {
		told.Line = m.line(c, p)
	}
	url, err := m.Expand(told)
	if err != nil {
		return outbox.Delivery{}, err
	}
	return outbox.Delivery{
		ID: "dlr-" + m.ID.String() + "-" + strconv.Itoa(int(c)), Account: m.Account, Kind: outbox.KindReceipt, MessageID: m.ID.String(),
		Originator: m.Originator, Destination: m.Destination, CreatedAt: n.deps.Now(),
		Request: &outbox.Request{Method: http.MethodGet, URL: url},
	}, nil
}

// line is %dlr where the network gave none: as appendix B of SMPP 3.4 has it,
// with our id and the first 20 characters of the text.
func (m *Message) line(c Code, p *Part) string {
	const stamp = "0601021504"
	delivered := "000"
	if c == CodeDelivered {
		delivered = "001"
	}
	fault := "000"
	if c == CodeRejected || c == CodeRefused {
		fault = "001"
	}
	text := []rune(p.Text)
	return strings.Join([]string{
		"id:" + m.ID.String(), "sub:001", "dlvrd:" + delivered,
		"submit date:" + m.ReceivedAt.UTC().Format(stamp), "done date:" + p.ChangedAt.UTC().Format(stamp),
		"stat:" + c.stat(), "err:" + fault, "text:" + string(text[:min(20, len(text))]),
	}, " ")
}

// stat is the code's name in such a line.
func (c Code) stat() string {
	switch c {
	case CodeDelivered:
		return "DELIVRD"
	case CodeRejected:
		return "UNDELIV"
	case CodeBuffered:
		return "ENROUTE"
	case CodeAccepted:
		return "ACCEPTD"
	}
	return "REJECTD"
}
