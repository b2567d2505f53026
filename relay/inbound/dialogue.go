package inbound

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders/sms"
)

// dialogueTime is date and time with microseconds, in UTC.
const dialogueTime = "2006-01-02 15:04:05.000000"

// dialogue lists the fields of dialogue_post and dialogue_get: the names are
// those of the X-E3 interface, in which a message is either text or octets.
func dialogue(v view) []formField {
	fields := []formField{
		{"X-E3-ID", id},
		{"X-E3-Originating-Address", from},
		{"X-E3-Destination-Address", to},
		{"X-E3-Timestamp", func(v view) string { return v.ReceivedAt.In(time.UTC).Format(dialogueTime) }},
		{"X-E3-Data-Coding-Scheme", codingScheme},
		{"X-E3-User-Data-Header", udh},
	}
	if v.Coding == sms.Binary {
		return append(fields, formField{"X-E3-Hex-Message", func(v view) string { return hex.EncodeToString(v.Data) }})
	}
	return append(fields, formField{"X-E3-Message", body})
}

// codingScheme is the general data coding scheme without class or compression,
// two hex digits (TS 23.038, 4).
func codingScheme(v view) string {
	schemes := map[sms.Coding]int{sms.GSM: 0x00, sms.Binary: 0x04, sms.UCS2: 0x08}
	return fmt.Sprintf("%02x", schemes[v.Coding])
}

// addQuery adds parameters to the query of a URL.
func addQuery(url string, query []byte) string {
	_, own, has := strings.Cut(url, "?")
	switch {
	case !has:
		return url + "?" + string(query)
	case own == "" || strings.HasSuffix(own, "&"):
		return url + string(query)
	}
	return url + "&" + string(query)
}
