package contract

import "github.com/penstock/penstock/cmd/penstock/e2e"

// soapSamples returns SOAP requests that are not answered with a Fault.
func soapSamples() []sample {
	return []sample{
		{"soapDescription", "GET", "/soap?wsdl", "", ""},
		{"soapRequest", "POST", "/soap", e2e.SOAP11Type, e2e.SOAPEnvelope("acme", "447700900123")},
		{"soapRequest", "POST", "/soap", e2e.SOAP11Type, e2e.SOAPEnvelope("acme", "0770")},
		{"soapRequest", "POST", "/soap", e2e.SOAP12Type, e2e.ToSOAP12(e2e.SOAPEnvelope("acme", "447700900123"))},
	}
}

// soapMistakes returns SOAP requests that are answered with a Fault or 404.
func soapMistakes() []refusedSample {
	return []refusedSample{
		{sample{"", "GET", "/soap", "", ""}, 404},
		{sample{"", "POST", "/soap", e2e.SOAP11Type, e2e.SOAPEnvelope("nobody", "447700900123")}, 500},
		{sample{"", "POST", "/soap", e2e.SOAP11Type, `<!DOCTYPE a>` + e2e.SOAPEnvelope("acme", "447700900123")}, 500},
		{sample{"", "POST", "/soap", e2e.SOAP12Type, e2e.ToSOAP12(e2e.SOAPEnvelope("nobody", "447700900123"))}, 400},
	}
}
