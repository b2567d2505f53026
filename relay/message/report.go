package message

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/template"
)

// Report is the address for delivery reports. The zero value disables them
// (SOAP's callbacktype NONE).
type Report struct {
	// URL is requested with GET and may have placeholders.
	URL string `json:"url,omitempty"`
}

// Type returns the name of the report's type in previews and SOAP.
func (r Report) Type() string {
	if r.URL == "" {
		return "NONE"
	}
	return "HTTPGET"
}

// maxURL is the longest URL of a report, in bytes.
const maxURL = 2048

// placeholders returns the placeholders of a report's URL.
func placeholders() []string { return []string{"msgid", "dest", "code", "dlr", "timestamp"} }

// check validates the URL. checkURL is called with sample values for the placeholders and
// returns an error if the gateway may not call the URL; nil allows all.
func (r Report) check(checkURL func(string) error) error {
	if r.URL == "" {
		return nil
	}
	if len(r.URL) > maxURL {
		return fmt.Errorf("the URL may not be longer than %d characters", maxURL)
	}
	t, err := template.Compile(r.URL, placeholders())
	if err == nil {
		err = t.Check()
	}
	if err != nil || checkURL == nil {
		return err
	}
	return checkURL(t.Sample())
}

// DeliveryReport is one delivery report of a message.
type DeliveryReport struct {
	Code Code
	// Line is the value of %dlr: key:value pairs of the carrier's receipt or of receiptLine.
	Line string
	At   time.Time
}

// Expand returns the URL of a report with its placeholders replaced and escaped. It returns
// relay.KindInvalid for an invalid URL, which Service.Check refuses.
func (m *Message) Expand(report DeliveryReport) (string, error) {
	t, err := template.Compile(m.Report.URL, placeholders())
	if err != nil {
		return "", relay.Errorf(relay.KindInvalid, "message %s: report: %w", m.ID, err)
	}
	return t.Expand(func(name string) string {
		switch name {
		case "msgid":
			return m.ID.String()
		case "dest":
			return m.Destination
		case "code":
			return strconv.Itoa(int(report.Code))
		case "dlr":
			return report.Line
		}
		return strconv.FormatInt(report.At.Unix(), 10)
	}), nil
}

// deliveries returns the deliveries that report a message's code and the codes before it: a
// receipt may arrive before the carrier's answer, and a crash may have prevented an earlier
// report. Each code is reported once, because it is part of the delivery's id.
func (m *Message) deliveries(now time.Time) ([]outbox.Delivery, error) {
	code, part := m.Code()
	if code == 0 || m.Report.URL == "" {
		return nil, nil
	}
	p := &m.Parts[part]
	var reports []DeliveryReport
	add := func(c Code, p *Part) {
		r := DeliveryReport{Code: c, At: p.ChangedAt, Line: p.Report}
		if c == CodeBuffered && p.State != Buffered {
			r.At, r.Line = p.BufferedAt, ""
		}
		if r.Line == "" || c == CodeAccepted || c == CodeRejected {
			r.Line = m.receiptLine(c, p.Text, r.At)
		}
		reports = append(reports, r)
	}
	if code == CodeDelivered || code == CodeBuffered || code == CodeUndelivered {
		add(CodeAccepted, p)
	}
	if code == CodeDelivered || code == CodeUndelivered {
		bufferedPart := slices.IndexFunc(m.Parts, func(b Part) bool { return !b.BufferedAt.IsZero() })
		if bufferedPart >= 0 && (code == CodeDelivered || !m.Parts[bufferedPart].BufferedAt.After(p.ChangedAt)) {
			add(CodeBuffered, &m.Parts[bufferedPart])
		}
	}
	add(code, p)

	deliveries := make([]outbox.Delivery, len(reports))
	for i, r := range reports {
		url, err := m.Expand(r)
		if err != nil {
			return nil, err
		}
		deliveries[i] = outbox.Delivery{
			ID: "dlr-" + m.ID.String() + "-" + strconv.Itoa(int(r.Code)), Account: m.Account, Kind: outbox.KindReport, MessageID: m.ID.String(),
			Originator: m.Originator, Destination: m.Destination, CreatedAt: now, Trace: m.Trace,
			Request: &outbox.Request{Method: http.MethodGet, URL: url},
		}
	}
	return deliveries, nil
}

// receiptLine returns the value of %dlr for a code without a carrier's receipt of its own, in the
// format of SMPP 3.4, appendix B, with our id and the first 20 characters of the text.
func (m *Message) receiptLine(c Code, part string, doneAt time.Time) string {
	const timeFormat = "0601021504"
	status := map[Code]string{
		CodeDelivered: "DELIVRD", CodeUndelivered: "UNDELIV", CodeBuffered: "ENROUTE", CodeAccepted: "ACCEPTD", CodeRejected: "REJECTD",
	}
	deliveredCount, errorCode := "000", "000"
	switch c {
	case CodeDelivered:
		deliveredCount = "001"
	case CodeUndelivered, CodeRejected:
		errorCode = "001"
	}
	text := []rune(part)
	return strings.Join([]string{
		"id:" + m.ID.String(), "sub:001", "dlvrd:" + deliveredCount,
		"submit date:" + m.ReceivedAt.UTC().Format(timeFormat), "done date:" + doneAt.UTC().Format(timeFormat),
		"stat:" + status[c], "err:" + errorCode, "text:" + string(text[:min(20, len(text))]),
	}, " ")
}
