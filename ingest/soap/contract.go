package soap

import "slices"

// Namespace is the target namespace of the operations.
const Namespace = "urn:penstock:messaging"

// authHeader is the header block with the credentials, and its part in the WSDL.
const authHeader = "auth"

// element is an element of a request or an answer, as the specification's
// table of SOAP messages has it.
type element struct {
	name string
	// param is what REST and the use cases call it; "" if it is no parameter
	// of theirs.
	param    string
	optional bool
	most     int // how often it may come; 0 means once
	kind     kind
	// typeName and children are those of an element that holds elements.
	typeName string
	children []element
}

// many is how often an element may come.
func (e element) many() int { return max(e.most, 1) }

// operation is a request element, the answer to it, and what it asks for.
type operation struct {
	name     string // of the request element
	action   string // the fragment of its SOAPAction
	summary  string
	children []element
	send     sender
}

// answerName is the element that answers.
func (o operation) answerName() string { return o.name + "Response" }

// soapAction is the whole SOAPAction.
func (o operation) soapAction() string { return Namespace + "#" + o.action }

// operations lists the four, in the specification's order.
func operations() []operation {
	return []operation{
		{
			name: "SoapSendSms", action: "sendsms", summary: "Sends a text, as a message or as a flash message.", send: sendText,
			children: slices.Concat(
				addressed(),
				[]element{
					{name: "message", param: "message", kind: text()},
					{name: "messagetype", param: "flash", kind: words("text", "flash")},
					{name: "maxconcat", param: "max_parts", kind: between(1, 255), optional: true},
				},
				scheduled(),
			),
		},
		{
			name: "SoapSendBinarySms", action: "sendbinarysms", summary: "Sends octets, with a user data header.", send: sendBinary,
			children: slices.Concat(
				addressed(),
				[]element{
					{name: "data", param: "data", kind: octets()},
					{name: "udh", param: "udh", kind: octets().orEmpty()},
				},
				scheduled(),
				[]element{{name: "encoding", param: "encoding", kind: numbers("7", "8", "16"), optional: true}},
			),
		},
		{
			name: "SoapSendWapPush", action: "sendwappush", summary: "Sends a link as a WAP push service indication.", send: sendPush,
			children: slices.Concat(
				addressed(),
				[]element{
					{name: "waptitle", param: "title", kind: text()},
					{name: "wapurl", param: "url", kind: text()},
				},
				scheduled(),
			),
		},
		{
			name: "SoapSendMMSNot", action: "sendmmsnot", summary: "Sends the notification that an MMS can be fetched.", send: sendNotification,
			children: slices.Concat(
				addressed(),
				[]element{
					{name: "subject", param: "subject", kind: text()},
					{name: "mmsurl", param: "url", kind: text()},
					{name: "filesize", param: "size", kind: between(0, 1<<32-1)},
					{name: "class", param: "class", kind: numbers("80", "81", "82", "83")},
					{name: "expiry", param: "expiry", kind: atLeast(0)},
				},
				scheduled(),
			),
		},
	}
}

// maxDestinations is how many numbers a request may name.
const maxDestinations = 10

// addressed are the children that every request begins with.
func addressed() []element {
	return []element{
		{
			name: "destinationarray", param: "destinations", typeName: "DestinationArray",
			children: []element{{name: "number", param: "destinations", kind: msisdn(), most: maxDestinations}},
		},
		{name: "originator", param: "originator", kind: text(), optional: true},
	}
}

// scheduled are the children that every request has after its message.
func scheduled() []element {
	return []element{
		{name: "sendtime", param: "send_time", kind: moment(), optional: true},
		{
			name: "dlrep", param: "dlr_url", typeName: "DeliveryReport", optional: true,
			children: []element{
				{name: "callbackurl", param: "dlr_url", kind: text().orEmpty()},
				{name: "callbacktype", kind: words("NONE", "HTTPGET")},
			},
		},
	}
}

// credentials are the children of the header auth.
func credentials() []element {
	return []element{{name: "username", kind: text()}, {name: "password", kind: text()}}
}

// answered are the children of every answer.
func answered() []element {
	return []element{
		{name: "responsecode", kind: text()}, {name: "creditsused", kind: text()}, {name: "description", kind: text()},
	}
}
