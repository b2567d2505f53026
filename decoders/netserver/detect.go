package netserver

import (
	"bytes"
	"net/url"
	"strings"

	"github.com/penstock/penstock/decoders/jsonbody"
)

// Inspect checks that the body is complete and detects its sender, without parsing its values.
// A handler needs the sender to choose its response. The error is
// ErrProtobuf, ErrTooMany, or a *decoders.Error of format "json" if the
// body is neither JSON nor a form nor an XML document.
func Inspect(p Post) (Sender, error) {
	if isProtobuf(p) {
		return "", ErrProtobuf
	}
	sender, items, err := recognise(p)
	if err != nil {
		return "", err
	}
	if items > maxFrames {
		return "", ErrTooMany
	}
	return sender, nil
}

// Detect returns the sender of a body that Inspect has accepted: Generic if the shape of the
// body is unknown.
func Detect(p Post) Sender {
	sender, _, _ := recognise(p)
	return sender
}

// recognise detects the sender of a body from its first values, and counts the items of its list,
// or of the list that Monnit posts within an object. If the body is cut off, it examines
// the beginning. An object of unknown shape is Sigfox's if it names a device and was posted to
// the webhook lpwan: Sigfox's callbacks that report an error have no seqNumber.
func recognise(p Post) (sender Sender, items int, err error) {
	if s, ok := detectOther(p); ok {
		return s, 0, nil
	}
	const depth, limit = 2, 1000 // to bound the memory of concurrent requests
	sender = Generic
	d, err := readPart(p.Body, depth, limit)
	if d.kind() == jsonbody.Array {
		d.Items(func(item document) {
			if items++; items == 1 {
				sender = senderOf(item, true)
			}
		})
		return sender, items, err
	}
	d.Each("sensorMessages", func(document) { items++ })
	if sender = senderOf(d, false); sender == Generic && p.Path == lpwan && d.Has("device") {
		sender = Sigfox
	}
	return sender, items, err
}

// lpwan is the Path of the webhook for low-power wide-area operators.
const lpwan = "lpwan"

// detectOther detects the senders of bodies other than JSON: Sigfox's forms and
// queries, ThingPark's XML.
func detectOther(p Post) (Sender, bool) {
	body := bytes.TrimLeft(p.Body, " \t\r\n\xef\xbb\xbf")
	if len(body) == 0 {
		return Sigfox, isSigfox(p.Query) || p.Path == lpwan && p.Query.Has("device")
	}
	if body[0] == '{' || body[0] == '[' {
		return "", false
	}
	if body[0] == '<' {
		if bytes.Contains(body, []byte("DevEUI_")) || bytes.Contains(body, []byte("BS_alarm")) {
			return ThingPark, true
		}
		return unknownDocument, true
	}
	form, err := url.ParseQuery(string(body))
	isForm := strings.HasPrefix(strings.ToLower(p.ContentType), "application/x-www-form-urlencoded")
	switch {
	case err == nil && isSigfox(form): // also if the template declares plain text
		return Sigfox, true
	case isForm && p.Path == lpwan:
		return Sigfox, true
	case isForm:
		return unknownForm, true
	}
	return "", false
}

func isSigfox(q url.Values) bool {
	return q.Has("seqNumber") && (q.Has("device") || q.Has("deviceId") || q.Has("id"))
}

// isProtobuf reports whether a body has a binary content type and does not look like JSON.
func isProtobuf(p Post) bool {
	mime, _, _ := strings.Cut(p.ContentType, ";")
	switch strings.ToLower(strings.TrimSpace(mime)) {
	case "application/octet-stream", "application/protobuf", "application/x-protobuf", "application/vnd.google.protobuf":
	default:
		return false
	}
	body := bytes.TrimLeft(p.Body, " \t\r\n")
	return len(body) > 0 && body[0] != '{' && body[0] != '['
}
