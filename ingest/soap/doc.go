// Package soap is the SOAP surface of messaging, POST /soap and GET /soap?wsdl,
// after document 1 of the specification: SoapSendSms, SoapSendBinarySms,
// SoapSendWapPush and SoapSendMMSNot, document style, literal use.
//
// One description of the operations (contract.go) reads and checks requests, and
// orders the children of answers; a test holds messaging.wsdl against it. SOAP 1.1 (W3C note of
// 2000-05-08) and 1.2 (second edition) are answered in kind, whatever the
// Content-Type; the element in the Body names the operation, by namespace and
// local name, and SOAPAction may only not contradict it.
//
// Requests without valid credentials in the header auth, bodies that are not an
// envelope, requests that overload refuses, and internal errors get a Fault. All others
// get a response code: 0 accepted, 2
// insufficient credit, 3 invalid request, 4 temporarily unavailable.
//
// Refused: a DOCTYPE, so that there are no entities to expand; processing
// instructions; bodies over 256 KiB, deeper than 32 elements or with more than
// 2,000 of them; header blocks that must be understood and are not.
package soap
