package soap

import "strings"

// version is that of an envelope.
type version int

// The versions.
const (
	soap11 version = iota
	soap12
)

// namespace is that of the envelope.
func (v version) namespace() string {
	if v == soap12 {
		return "http://www.w3.org/2003/05/soap-envelope"
	}
	return "http://schemas.xmlsoap.org/soap/envelope/"
}

// contentType is what answers are sent as.
func (v version) contentType() string {
	if v == soap12 {
		return "application/soap+xml; charset=utf-8"
	}
	return "text/xml; charset=utf-8"
}

// versionOf derives the version from the Content-Type, for bodies that name none.
func versionOf(contentType string) version {
	media, _, _ := strings.Cut(contentType, ";")
	if strings.EqualFold(strings.TrimSpace(media), "application/soap+xml") {
		return soap12
	}
	return soap11
}

// forUs reports whether a header block is addressed to this node: to the next node
// or to the ultimate receiver.
func (v version) forUs(block *node) bool {
	if v == soap12 {
		role := strings.TrimPrefix(block.attr(v.namespace(), "role"), v.namespace()+"/role/")
		return role == "" || role == "next" || role == "ultimateReceiver"
	}
	actor := block.attr(v.namespace(), "actor")
	return actor == "" || actor == "http://schemas.xmlsoap.org/soap/actor/next"
}

// required reports whether a header block must be understood.
func (v version) required(block *node) bool {
	must := block.attr(v.namespace(), "mustUnderstand")
	return must == "1" || must == "true" && v == soap12
}
