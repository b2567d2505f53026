package message

import (
	"fmt"
	"strconv"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/template"
)

// Report says where delivery reports go. The zero value is nowhere, SOAP's
// callbacktype NONE.
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

// check reads the URL. checkURL says whether the gateway may call it, which it
// gets with samples in the place of the placeholders; nil allows all.
func (r Report) check(checkURL func(string) error) error {
	if r.URL == "" {
		return nil
	}
	if len(r.URL) > maxURL {
		return fmt.Errorf("the URL may not be longer than %d characters", maxURL)
	}
	t, err := template.Compile(r.URL, placeholders())
	if err != nil || checkURL == nil {
		return err
	}
	return checkURL(t.Sample())
}

// Told is one delivery report of a message.
type Told struct {
	Code Code
	// Line is what the carrier told: key:value pairs, %dlr.
	Line string
	At   time.Time
}

// Expand returns the URL to call for a report: every placeholder replaced and
// escaped for where it stands. It returns relay.KindInvalid for a URL that
// cannot be read, which was refused when the message was taken.
func (m *Message) Expand(told Told) (string, error) {
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
			return strconv.Itoa(int(told.Code))
		case "dlr":
			return told.Line
		}
		return strconv.FormatInt(told.At.Unix(), 10)
	}), nil
}
