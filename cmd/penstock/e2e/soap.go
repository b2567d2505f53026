package e2e

import (
	"strings"
)

// SOAPEnvelope is a request to send a text to a number, in SOAP 1.1.
func SOAPEnvelope(username, number string) string {
	return `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Header><auth xmlns="urn:penstock:messaging"><username>` + username +
		`</username><password>secret</password></auth></e:Header><e:Body><SoapSendSms xmlns="urn:penstock:messaging"><destinationarray><number>` + number +
		`</number></destinationarray><message>hi</message><messagetype>text</messagetype></SoapSendSms></e:Body></e:Envelope>`
}

// SOAP11Type and SOAP12Type are the media types of the two versions.
const SOAP11Type, SOAP12Type = "text/xml; charset=utf-8", "application/soap+xml; charset=utf-8"

// ToSOAP12 turns an envelope of SOAP 1.1 into one of SOAP 1.2.
func ToSOAP12(envelope string) string {
	return strings.Replace(envelope, "http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope", 1)
}
