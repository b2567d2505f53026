package soap

import (
	"bytes"
	"fmt"
	"mime"
	"regexp"
	"strings"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// envelope is a parsed SOAP request.
type envelope struct {
	version version
	auth    *node // the header block auth; nil if it is missing
	request *node // the element in the Body
}

// parseEnvelope parses an envelope. The error is a *fault in the version of the envelope, in that of
// the Content-Type if there is no Envelope, or in SOAP 1.1 if its namespace is unknown.
func parseEnvelope(raw []byte, contentType string) (envelope, error) {
	e := envelope{version: versionOf(contentType)}
	utf8, err := toUTF8(raw, contentType)
	if err != nil {
		return e, e.senderFault(err.Error())
	}
	root, err := parse(utf8)
	if err != nil {
		return e, e.senderFault(err.Error())
	}
	if root.name.Local != "Envelope" {
		return e, e.senderFault(fmt.Sprintf("The root element is %s, not an Envelope.", quoteClipped(root.name.Local)))
	}
	switch root.name.Space {
	case soap11.namespace():
		e.version = soap11
	case soap12.namespace():
		e.version = soap12
	default:
		return e, &fault{version: soap11, code: versionMismatch, reason: fmt.Sprintf("The namespace of the Envelope is %s, neither that of SOAP 1.1 nor 1.2.", quoteClipped(root.name.Space))}
	}
	bodies := 0
	for i, part := range root.children {
		switch {
		case part.hasName(e.version.namespace(), "Header") && i == 0:
			if err := e.readHeader(part); err != nil {
				return e, err
			}
		case part.hasName(e.version.namespace(), "Body") && bodies == 0:
			bodies++
			if len(part.children) != 1 {
				return e, e.senderFault(fmt.Sprintf("The Body has %d elements, not one (byte %d).", len(part.children), part.offset))
			}
			e.request = part.children[0]
		default:
			return e, e.senderFault(fmt.Sprintf("The Envelope must hold a Header and a Body, not %s (byte %d).", quoteClipped(part.name.Local), part.offset))
		}
	}
	if e.request == nil {
		return e, e.senderFault("The Envelope has no Body.")
	}
	return e, nil
}

// readHeader sets auth, and refuses unknown header blocks with mustUnderstand.
func (e *envelope) readHeader(h *node) error {
	for _, block := range h.children {
		switch {
		case block.hasName(Namespace, authHeader) && e.auth == nil:
			e.auth = block
		case block.hasName(Namespace, authHeader):
			return e.senderFault(fmt.Sprintf("The header %s is given twice (byte %d).", authHeader, block.offset))
		case e.version.mustUnderstand(block) && e.version.isForReceiver(block):
			return &fault{version: e.version, code: mustUnderstand, reason: fmt.Sprintf("The header %s must be understood, and is not (byte %d).", quoteClipped(block.name.Local), block.offset)}
		}
	}
	return nil
}

func (e *envelope) senderFault(reason string) *fault {
	return &fault{version: e.version, code: senderFault, reason: reason}
}

var encodingDeclaration = regexp.MustCompile(`^<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']`)

// toUTF8 converts a document to UTF-8. The first of these that is present determines the encoding:
// the byte order mark, the charset of the Content-Type, the XML declaration.
func toUTF8(raw []byte, contentType string) ([]byte, error) {
	if remaining, ok := bytes.CutPrefix(raw, []byte("\xef\xbb\xbf")); ok {
		return remaining, nil
	}
	if remaining, ok := bytes.CutPrefix(raw, []byte("\xfe\xff")); ok {
		return decodeUTF16(remaining, unicode.BigEndian)
	}
	if remaining, ok := bytes.CutPrefix(raw, []byte("\xff\xfe")); ok {
		return decodeUTF16(remaining, unicode.LittleEndian)
	}
	label := "" // of the XML declaration
	if m := encodingDeclaration.FindSubmatch(raw[:min(len(raw), 200)]); m != nil {
		label = string(m[1])
	}
	if _, parameters, err := mime.ParseMediaType(contentType); err == nil && parameters["charset"] != "" {
		label = parameters["charset"]
	}
	switch strings.ToLower(label) {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return raw, nil
	case "iso-8859-1", "latin1":
		return charmap.ISO8859_1.NewDecoder().Bytes(raw)
	}
	return nil, &unreadable{reason: fmt.Sprintf("The character encoding %s is not supported; use UTF-8.", quoteClipped(label))}
}

func decodeUTF16(raw []byte, order unicode.Endianness) ([]byte, error) {
	if len(raw)%2 != 0 {
		return nil, &unreadable{offset: int64(len(raw)), reason: "The body is not valid UTF-16: its length is odd."}
	}
	return unicode.UTF16(order, unicode.IgnoreBOM).NewDecoder().Bytes(raw)
}

// version is the SOAP version of an envelope.
type version int

const (
	soap11 version = iota
	soap12
)

func (v version) namespace() string {
	if v == soap12 {
		return "http://www.w3.org/2003/05/soap-envelope"
	}
	return "http://schemas.xmlsoap.org/soap/envelope/"
}

func (v version) contentType() string {
	if v == soap12 {
		return "application/soap+xml; charset=utf-8"
	}
	return "text/xml; charset=utf-8"
}

// versionOf returns the version of a Content-Type, for envelopes without a version.
func versionOf(contentType string) version {
	media, _, _ := strings.Cut(contentType, ";")
	if strings.EqualFold(strings.TrimSpace(media), "application/soap+xml") {
		return soap12
	}
	return soap11
}

// isForReceiver reports whether a header block is addressed to the next node or the ultimate
// receiver.
func (v version) isForReceiver(block *node) bool {
	if v == soap12 {
		role := strings.TrimPrefix(block.attr(v.namespace(), "role"), v.namespace()+"/role/")
		return role == "" || role == "next" || role == "ultimateReceiver"
	}
	actor := block.attr(v.namespace(), "actor")
	return actor == "" || actor == "http://schemas.xmlsoap.org/soap/actor/next"
}

// mustUnderstand reports whether a header block must be understood.
func (v version) mustUnderstand(block *node) bool {
	must := block.attr(v.namespace(), "mustUnderstand")
	return must == "1" || must == "true" && v == soap12
}
