package soap

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
)

// kind is the type of an element's text: an XML Schema type with restrictions. An element with
// children has the zero kind.
type kind struct {
	xsd              string   // string, integer, hexBinary or dateTime
	enumerated       []string // the valid texts; empty means all
	minimum, maximum *int64   // the bounds of an integer; nil means none
	msisdn           bool     // the string must be an MSISDN
	mayBeEmpty       bool     // a required element may be empty
}

func textKind() kind                       { return kind{xsd: "string"} }
func msisdnKind() kind                     { return kind{xsd: "string", msisdn: true} }
func enumKind(texts ...string) kind        { return kind{xsd: "string", enumerated: texts} }
func integerEnumKind(texts ...string) kind { return kind{xsd: "integer", enumerated: texts} }
func rangeKind(minimum, limit int64) kind {
	return kind{xsd: "integer", minimum: &minimum, maximum: &limit}
}
func minimumKind(minimum int64) kind { return kind{xsd: "integer", minimum: &minimum} }
func octetsKind() kind               { return kind{xsd: "hexBinary"} }
func dateTimeKind() kind             { return kind{xsd: "dateTime"} }

func (k kind) orEmpty() kind { k.mayBeEmpty = true; return k }

// read parses a text to a string, an int64, a []byte or a time.Time. The error describes the
// valid texts.
func (k kind) read(s string) (any, error) {
	if k.xsd != "string" || k.msisdn || len(k.enumerated) > 0 {
		s = strings.Trim(s, " \t\r\n") // as XML Schema does
	}
	switch k.xsd {
	case "integer":
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || k.minimum != nil && n < *k.minimum || k.maximum != nil && n > *k.maximum ||
			len(k.enumerated) > 0 && !slices.Contains(k.enumerated, strconv.FormatInt(n, 10)) {
			return nil, fmt.Errorf("expected %s, got %s", k, quoteClipped(s))
		}
		return n, nil
	case "hexBinary":
		b, err := hex.DecodeString(s)
		if err != nil {
			return nil, fmt.Errorf("expected an even number of hexadecimal digits, got %s", quoteClipped(s))
		}
		return b, nil
	case "dateTime":
		day, zone, endOfDay := strings.Cut(s, "T24:00:00")
		if endOfDay {
			s = day + "T00:00:00" + zone
		}
		for _, layout := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05"} { // UTC if there is no zone
			if t, err := time.Parse(layout, s); err == nil {
				if endOfDay {
					t = t.AddDate(0, 0, 1)
				}
				return t.UTC(), nil
			}
		}
		return nil, fmt.Errorf("expected a time like 2026-01-31T12:00:00Z, got %s", quoteClipped(s))
	}
	if len(k.enumerated) > 0 && !slices.Contains(k.enumerated, s) {
		return nil, fmt.Errorf("expected %s, got %s", k, quoteClipped(s))
	}
	if _, err := relay.ParseMSISDN(s); err != nil && k.msisdn {
		return nil, fmt.Errorf("expected 7 to 15 digits, country code first, without a plus sign or leading zeros, got %s", quoteClipped(s))
	}
	return s, nil
}

// String describes the valid texts.
func (k kind) String() string {
	switch {
	case len(k.enumerated) > 1:
		lastIndex := len(k.enumerated) - 1
		return strings.Join(k.enumerated[:lastIndex], ", ") + " or " + k.enumerated[lastIndex]
	case k.minimum != nil && k.maximum != nil:
		return fmt.Sprintf("a whole number from %d to %d", *k.minimum, *k.maximum)
	case k.minimum != nil:
		return fmt.Sprintf("a whole number of %d or more", *k.minimum)
	}
	return "an xs:" + k.xsd
}

// quoteClipped quotes the first 40 characters of a client's text.
func quoteClipped(s string) string {
	if runes := []rune(s); len(runes) > 40 {
		s = string(runes[:40]) + "…"
	}
	return strconv.Quote(s)
}
