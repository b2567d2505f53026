package vcard

import (
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/sms"
)

// Port is the port for vCards without WAP security (WAP-259, 6.5).
const Port = 9204

// Version is a version of the format.
type Version string

// The versions. V30 is the default.
const (
	V21 Version = "2.1"
	V30 Version = "3.0"
	V40 Version = "4.0"
)

// ParseVersion parses 2.1, 3.0 or 4.0; "" means 3.0.
//
// It returns a decoders.Error with format "vcard" and field "version".
func ParseVersion(s string) (Version, error) {
	switch v := Version(s); v {
	case "":
		return V30, nil
	case V21, V30, V40:
		return v, nil
	}
	return "", newError("version", -1, "is not 2.1, 3.0 or 4.0")
}

// Card is a contact. First and last name are required, other fields may be empty.
type Card struct {
	FirstName, LastName     string
	Mobile, Home, Work, Fax string // as given, except that a number with + becomes a tel: URI in 4.0
	Email                   string
	BirthDate               string // YYYY-MM-DD or YYYYMMDD
	Note                    string // may have several lines
}

// Message returns the card as a message to the vCard port, so that the phone
// offers to store it.
//
// It returns a decoders.Error with format "vcard" and the field's name in the REST
// API ("first_name", "phone.mobile").
func (c Card) Message(v Version) (sms.Octets, error) {
	card, err := c.Encode(v)
	if err != nil {
		return sms.Octets{}, err
	}
	return sms.Octets{Coding: sms.Binary, Header: sms.UDH{sms.Ports(Port, 0)}, Data: card}, nil
}

// Encode returns the card in a version, which must be one that ParseVersion returns. The errors are
// those of Message.
func (c Card) Encode(v Version) ([]byte, error) {
	for _, f := range []struct {
		name, text            string
		required, isMultiline bool
	}{
		{"first_name", c.FirstName, true, false}, {"last_name", c.LastName, true, false},
		{"phone.mobile", c.Mobile, false, false}, {"phone.home", c.Home, false, false},
		{"phone.work", c.Work, false, false}, {"phone.fax", c.Fax, false, false},
		{"email", c.Email, false, false}, {"note", c.Note, false, true},
	} {
		if f.required && strings.TrimSpace(f.text) == "" {
			return nil, newError(f.name, 0, "is empty")
		}
		if err := sms.CheckText("vcard", f.name, f.text, f.isMultiline); err != nil {
			return nil, err
		}
	}
	date, hasDate := parseDate(c.BirthDate)
	if !hasDate && c.BirthDate != "" {
		return nil, newError("birth_date", 0, "is not YYYY-MM-DD or YYYYMMDD")
	}
	c.Note = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(c.Note)
	w := writer{version: v}
	w.line("BEGIN:VCARD")
	w.line("VERSION:" + string(v))
	w.names(c.LastName, c.FirstName)
	w.text("FN", c.FirstName+" "+c.LastName)
	w.phone("cell", c.Mobile)
	w.phone("home", c.Home)
	w.phone("work", c.Work)
	w.phone("fax", c.Fax)
	w.email(c.Email)
	if hasDate && v == V40 {
		w.line("BDAY:" + date.Format("20060102")) // 4.0 has the basic format only
	} else if hasDate {
		w.line("BDAY:" + date.Format(time.DateOnly))
	}
	w.text("NOTE", c.Note)
	w.line("END:VCARD")
	return w.buf, nil
}

func parseDate(s string) (time.Time, bool) {
	for _, layout := range []string{time.DateOnly, "20060102"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func newError(field string, offset int, reason string) error {
	return &decoders.Error{Format: "vcard", Field: field, Offset: offset, Reason: reason}
}
