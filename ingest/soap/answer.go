package soap

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay"
)

// responseCode is the result of a request.
type responseCode int

const (
	accepted    responseCode = 0
	noCredit    responseCode = 2
	invalid     responseCode = 3
	unavailable responseCode = 4
)

// answer is the answer to a request.
type answer struct {
	code        responseCode
	credits     int64 // the credits that the request used
	description string
}

// encode returns the envelope of the answer.
func (a answer) encode(v version, o operation) []byte {
	texts := map[string]string{
		"responsecode": strconv.Itoa(int(a.code)), "creditsused": strconv.FormatInt(a.credits, 10), "description": a.description,
	}
	var b bytes.Buffer
	b.WriteString("<" + o.answerName() + ` xmlns="` + Namespace + `">`)
	for _, e := range answerElements() {
		writeElement(&b, e.name, texts[e.name])
	}
	b.WriteString("</" + o.answerName() + ">")
	return wrap(v, b.Bytes())
}

// refusal returns the answer to an error that has a response code, and any other error as it is.
func refusal(o operation, err error) (answer, error) {
	switch relay.KindOf(err) {
	case relay.KindNoCredit:
		return answer{code: noCredit, description: "Insufficient credit."}, nil
	case relay.KindInvalid:
		return answer{code: invalid, description: "Invalid request: " + describeProblems(o, relay.FieldsOf(err)) + "."}, nil
	case relay.KindUnavailable:
		return answer{code: unavailable, description: tryLater}, nil
	}
	return answer{}, err
}

// describeProblems describes the problems of parameters with the paths of their elements.
func describeProblems(o operation, fields map[string][]string) string {
	paths := pathsOf(o.children, "")
	var reasons []string
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		path := field
		if p, ok := paths[field]; ok {
			path = p
		}
		for _, reason := range fields[field] {
			reason = strings.ReplaceAll(reason, "The "+field+" ", "The "+path+" ")
			reasons = append(reasons, fmt.Sprintf("%s: %s", path, strings.TrimSuffix(reason, ".")))
		}
	}
	return strings.Join(reasons, "; ")
}

// faultCode is the code of a SOAP fault.
type faultCode int

// The codes. SOAP 1.1 calls the first two Client and Server.
const (
	senderFault faultCode = iota
	receiverFault
	versionMismatch
	mustUnderstand
	unauthenticated // a sender's fault
	tooManyAttempts // a sender's fault with the HTTP status 429
	overloaded      // a receiver's fault with the HTTP status 503
)

// name returns the code's name in a version of SOAP.
func (c faultCode) name(v version) string {
	switch {
	case c == versionMismatch:
		return "VersionMismatch"
	case c == mustUnderstand:
		return "MustUnderstand"
	case (c == receiverFault || c == overloaded) && v == soap12:
		return "Receiver"
	case c == receiverFault || c == overloaded:
		return "Server"
	case v == soap12:
		return "Sender"
	}
	return "Client"
}

// fault is an error that is answered with a Fault.
type fault struct {
	version version
	code    faultCode
	reason  string
}

// Error returns the reason.
func (f *fault) Error() string { return f.reason }

// status returns the HTTP status. It is 500 for most faults, and 400 for a sender's fault in SOAP
// 1.2 (part 2, table 20).
func (f *fault) status() int {
	switch f.code {
	case tooManyAttempts:
		return 429
	case overloaded:
		return 503
	}
	if f.version == soap12 && (f.code == senderFault || f.code == unauthenticated) {
		return 400
	}
	return 500
}

// encode returns the envelope of the fault. In SOAP 1.1 the children of a Fault have no namespace.
func (f *fault) encode() []byte {
	var b bytes.Buffer
	code := "s:" + f.code.name(f.version)
	b.WriteString("<s:Fault>")
	if f.version == soap12 {
		b.WriteString("<s:Code>")
		writeElement(&b, "s:Value", code)
		if f.code == unauthenticated {
			b.WriteString(`<s:Subcode><s:Value xmlns:m="` + Namespace + `">m:Unauthenticated</s:Value></s:Subcode>`)
		}
		b.WriteString(`</s:Code><s:Reason><s:Text xml:lang="en">`)
		writeEscaped(&b, f.reason)
		b.WriteString("</s:Text></s:Reason>")
	} else {
		writeElement(&b, "faultcode", code)
		writeElement(&b, "faultstring", f.reason)
	}
	b.WriteString("</s:Fault>")
	return wrap(f.version, b.Bytes())
}

// wrap returns an envelope with an element in its Body.
func wrap(v version, body []byte) []byte {
	var b bytes.Buffer
	b.WriteString(xml.Header)
	b.WriteString(`<s:Envelope xmlns:s="` + v.namespace() + `"><s:Body>`)
	b.Write(body)
	b.WriteString("</s:Body></s:Envelope>\n")
	return b.Bytes()
}

func writeElement(b *bytes.Buffer, name, text string) {
	b.WriteString("<" + name + ">")
	writeEscaped(b, text)
	b.WriteString("</" + name + ">")
}

// writeEscaped writes text. It replaces characters that are invalid in XML by U+FFFD.
func writeEscaped(b *bytes.Buffer, text string) {
	_ = xml.EscapeText(b, []byte(text)) // a buffer returns no errors
}
