// Package soap provides the SOAP operations of messaging at POST /soap, and their description at
// GET /soap?wsdl: SoapSendSms, SoapSendBinarySms, SoapSendWapPush and SoapSendMMSNot, document
// style, literal use.
//
// contract.go describes the elements of requests and answers; a test compares messaging.wsdl
// with it. Answers have the version of their request, SOAP 1.1 (W3C note of 2000-05-08) or 1.2
// (second edition), regardless of the Content-Type. The namespace and the local name of the
// element in the Body select the operation, and a SOAPAction must not name another one.
//
// The answer is a Fault for requests without valid credentials in the header auth or after too
// many wrong ones, for bodies that are not an envelope with an operation, for requests refused
// because of overload, and for internal errors. All other answers have a response code: 0 accepted,
// 2 insufficient credit, 3 invalid request, 4 temporarily unavailable.
//
// The surface refuses a DOCTYPE, which could define entities, and processing instructions. It
// also refuses bodies of more than 256 KiB, 32 levels or 2,000 elements, and unknown header
// blocks with mustUnderstand.
package soap
