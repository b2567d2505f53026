package message

import (
	"fmt"
	"strconv"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/template"
)

// Report is the address for delivery reports. The zero value disables them
// (SOAP's callbacktype NONE).
type Report struct {
	// URL gets a GET, with placeholders in it (specification 1, event 1).
	URL string `json:"url,omitempty"`
}

// Type is the report's type as preview and SOAP name it.
func (r Report) Type() string {
	if r.URL == "" {
		return "NONE"
	}
	return "HTTPGET"
}

// maxURL is the longest URL of a report, in bytes.
const maxURL = 2048

// placeholders lists the names that a report's URL may have after a percent
// sign.
func placeholders() []string { return []string{"msgid", "dest", "code", "dlr", "timestamp"} }

// check validates the URL. checkURL gets the URL with sample values for the
// placeholders and returns why the gateway may not call it; nil allows all.
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
	// Line is the carrier's receipt: key:value pairs, %dlr.
	Line string
	At   time.Time
}

// Expand returns the URL to call for a report, with every placeholder replaced
// and escaped for its position. It returns relay.KindInvalid for an invalid URL,
// which Check refuses.
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
