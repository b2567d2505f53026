package netserver

import (
	"crypto/sha256"
	"net/url"
	"strings"
	"time"
)

// VerifyThingPark checks the Token in the query of a post from ThingPark: the
// SHA-256, in hex, of some elements of the body, the query without the Token
// in the order it was sent, and the tunnel interface authentication key in
// lower case. The query is the raw one: its order counts, and a plus in Time
// is one.
//
// The token's Time may lie five minutes from now. The error is ErrUnsigned,
// ErrSignature, ErrStale or about a body that cannot be read.
func VerifyThingPark(rawQuery string, body []byte, key string, now time.Time) error {
	text, token, path := thingParkQuery(rawQuery)
	if token == "" {
		return ErrUnsigned
	}
	e, err := readThingParkElements(body)
	if err != nil {
		return err
	}
	if key == "" || !e.signed(text+strings.ToLower(key), token) {
		return ErrSignature
	}
	made, err := time.Parse(time.RFC3339Nano, path)
	if err != nil {
		return ErrStale
	}
	return fresh(made, now)
}

// thingParkQuery parts a query into the text that is signed, the token and the
// time.
func thingParkQuery(rawQuery string) (text, token, path string) {
	var signed []string
	for pair := range strings.SplitSeq(rawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		// PathUnescape leaves a plus alone, QueryUnescape would not.
		plain, err := url.PathUnescape(value)
		if err != nil {
			plain = value
		}
		switch name {
		case "Token":
			token = plain
			continue
		case "Time":
			path = plain
		case "LrnDevEui", "LrnFPort", "LrnInfos", "AS_ID":
		default:
			continue // the receiver's own, as a decoder_id
		}
		signed = append(signed, name+"="+plain)
	}
	return strings.Join(signed, "&"), token, path
}

// thingParkElements are the elements of a body that a token covers.
type thingParkElements struct {
	document, customer, devEUI, port, countUp, countDown, payload string
}

// signed compares the token. In the documents other than an uplink and a
// downlink only the device counts, in lower case in some versions.
func (e *thingParkElements) signed(remaining, token string) bool {
	switch e.document {
	case "DevEUI_uplink", "":
		return sumIs(token, e.customer+e.devEUI+e.port+e.countUp+e.payload+remaining)
	case "DevEUI_downlink_Sent":
		return sumIs(token, e.customer+e.devEUI+e.port+e.countDown+remaining)
	}
	return sumIs(token, e.customer+e.devEUI+remaining) || sumIs(token, e.customer+strings.ToLower(e.devEUI)+remaining)
}

func sumIs(token, text string) bool {
	sum := sha256.Sum256([]byte(text))
	return hexEqual(token, sum[:])
}

// readThingParkElements reads them where the parser does: one that is not signed
// must not stand where it is read.
func readThingParkElements(body []byte) (thingParkElements, error) {
	body, err := thingParkJSON(body)
	if err != nil {
		return thingParkElements{}, err
	}
	d, err := readDocument(body)
	text := func(path string) string {
		s, _ := d.Value(path).Text()
		return s
	}
	name := thingParkDocument(d)
	if name == "BS_alarm" {
		name = ""
	}
	return thingParkElements{
		document: name, customer: text("CustomerID"), devEUI: text("DevEUI"), port: text("FPort"),
		countUp: text("FCntUp"), countDown: text("FCntDn"), payload: text("payload_hex"),
	}, err
}
