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

// The codes.
const (
	accepted    responseCode = 0
	noCredit    responseCode = 2
	invalid     responseCode = 3
	unavailable responseCode = 4
)

// answer is the answer to a request.
type answer struct {
	code        responseCode
	credits     int64 // that this request used
	description string
}

// encode writes the envelope, children in the order of their description.
func (a answer) encode(v version, o operation) []byte {
	texts := map[string]string{
		"responsecode": strconv.Itoa(int(a.code)), "creditsused": strconv.FormatInt(a.credits, 10), "description": a.description,
	}
	var b bytes.Buffer
	b.WriteString("<" + o.answerName() + ` xmlns="` + Namespace + `">`)
	for _, e := range answered() {
		leaf(&b, e.name, texts[e.name])
	}
	b.WriteString("</" + o.answerName() + ">")
	return wrap(v, b.Bytes())
}

// refusal returns the answer to an error that a client can correct, and any other error.
func refusal(o operation, err error) (answer, error) {
	switch relay.KindOf(err) {
	case relay.KindNoCredit:
		return answer{code: noCredit, description: "Insufficient credit."}, nil
	case relay.KindInvalid:
		return answer{code: invalid, description: "Invalid request: " + inElements(o, relay.FieldsOf(err)) + "."}, nil
	case relay.KindUnavailable:
		return answer{code: unavailable, description: later}, nil
	}
	return answer{}, err
}

// inElements describes invalid parameters by the names of their elements.
func inElements(o operation, fields map[string][]string) string {
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

// The codes; SOAP 1.1 calls the first two Client and Server.
const (
	senderFault faultCode = iota
	receiverFault
	versionMismatch
	mustUnderstand
	// unauthenticated is a sender's fault too.
	unauthenticated
	// tooManyAttempts is too; its HTTP status is 429.
	tooManyAttempts
	// overloaded is a receiver's fault; its HTTP status is 503.
	overloaded
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

// status is the HTTP status: 500, but SOAP 1.2 has 400 for a sender's fault
// (part 2, table 20), too many attempts give 429, and an overloaded gateway 503.
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

// encode writes the envelope. The children of a 1.1 Fault have no namespace:
// clients look for them so.
func (f *fault) encode() []byte {
	var b bytes.Buffer
	code := "s:" + f.code.name(f.version)
	b.WriteString("<s:Fault>")
	if f.version == soap12 {
		b.WriteString("<s:Code>")
		leaf(&b, "s:Value", code)
		if f.code == unauthenticated {
			b.WriteString(`<s:Subcode><s:Value xmlns:m="` + Namespace + `">m:Unauthenticated</s:Value></s:Subcode>`)
		}
		b.WriteString(`</s:Code><s:Reason><s:Text xml:lang="en">`)
		escape(&b, f.reason)
		b.WriteString("</s:Text></s:Reason>")
	} else {
		leaf(&b, "faultcode", code)
		leaf(&b, "faultstring", f.reason)
	}
	b.WriteString("</s:Fault>")
	return wrap(f.version, b.Bytes())
}

// wrap puts an element into the Body of an envelope.
func wrap(v version, body []byte) []byte {
	var b bytes.Buffer
	b.WriteString(xml.Header)
	b.WriteString(`<s:Envelope xmlns:s="` + v.namespace() + `"><s:Body>`)
	b.Write(body)
	b.WriteString("</s:Body></s:Envelope>\n")
	return b.Bytes()
}

func leaf(b *bytes.Buffer, name, text string) {
	b.WriteString("<" + name + ">")
	escape(b, text)
	b.WriteString("</" + name + ">")
}

// escape writes text; what XML cannot hold becomes U+FFFD.
func escape(b *bytes.Buffer, text string) {
	_ = xml.EscapeText(b, []byte(text)) // a buffer takes everything
}
