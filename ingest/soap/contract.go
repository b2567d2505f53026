package soap

import "slices"

// Namespace is the target namespace of the operations.
const Namespace = "urn:penstock:messaging"

// authHeader is the header block with the credentials.
const authHeader = "auth"

// element describes an element of a request or an answer, as in the specification's table of SOAP
// messages.
type element struct {
	name string
	// param is the name of the parameter in REST and in errors; "" if there is none.
	param    string
	optional bool
	limit    int // maximum occurrences; 0 means 1
	kind     kind
	children []element // of an element without text
}

func (e element) maxCount() int { return max(e.limit, 1) }

// operation describes a request element.
type operation struct {
	name     string // of the request element
	action   string // the fragment of its SOAPAction
	children []element
	read     orderReader // sets the fields of the order that are specific to the operation
}

func (o operation) answerName() string { return o.name + "Response" }

func (o operation) soapAction() string { return Namespace + "#" + o.action }

// operations lists the operations in the specification's order.
func operations() []operation {
	return []operation{
		{
			name: "SoapSendSms", action: "sendsms", read: readText,
			children: childrenOf(
				element{name: "message", param: "message", kind: textKind()},
				element{name: "messagetype", param: "flash", kind: enumKind("text", "flash")},
				element{name: "maxconcat", param: "max_parts", kind: rangeKind(1, 255), optional: true},
			),
		},
		{
			name: "SoapSendBinarySms", action: "sendbinarysms", read: readBinary,
			children: append(childrenOf(
				element{name: "data", param: "data", kind: octetsKind()},
				element{name: "udh", param: "udh", kind: octetsKind().orEmpty()},
			), element{name: "encoding", param: "encoding", kind: integerEnumKind("7", "8", "16"), optional: true}),
		},
		{
			name: "SoapSendWapPush", action: "sendwappush", read: readPush,
			children: childrenOf(
				element{name: "waptitle", param: "title", kind: textKind()},
				element{name: "wapurl", param: "url", kind: textKind()},
			),
		},
		{
			name: "SoapSendMMSNot", action: "sendmmsnot", read: readNotification,
			children: childrenOf(
				element{name: "subject", param: "subject", kind: textKind()},
				element{name: "mmsurl", param: "url", kind: textKind()},
				element{name: "filesize", param: "size", kind: rangeKind(0, 1<<32-1)},
				element{name: "class", param: "class", kind: integerEnumKind("80", "81", "82", "83")},
				element{name: "expiry", param: "expiry", kind: minimumKind(0)},
			),
		},
	}
}

// childrenOf returns the children of a request: the children of its message between the common
// children.
func childrenOf(message ...element) []element {
	leading := []element{
		{
			name: "destinationarray", param: "destinations",
			children: []element{{name: "number", param: "destinations", kind: msisdnKind(), limit: maxDestinations}},
		},
		{name: "originator", param: "originator", kind: textKind(), optional: true},
	}
	trailing := []element{
		{name: "sendtime", param: "send_time", kind: dateTimeKind(), optional: true},
		{
			name: "dlrep", param: "dlr_url", optional: true,
			children: []element{
				{name: "callbackurl", param: "dlr_url", kind: textKind().orEmpty()},
				{name: "callbacktype", kind: enumKind("NONE", "HTTPGET")},
			},
		},
	}
	return slices.Concat(leading, message, trailing)
}

// maxDestinations is the largest number of destinations of a request.
const maxDestinations = 10

// credentials returns the children of the header auth.
func credentials() []element {
	return []element{{name: "username", kind: textKind()}, {name: "password", kind: textKind()}}
}

// answerElements returns the children of every answer.
func answerElements() []element {
	return []element{
		{name: "responsecode", kind: textKind()}, {name: "creditsused", kind: textKind()}, {name: "description", kind: textKind()},
	}
}
