package soap

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"strings"
)

// wsdl writes the description of the operations as WSDL 1.1, with a port for
// each version of SOAP at the address.
func wsdl(all []operation, address string) []byte {
	w := &writer{typed: make(map[string]bool)}
	w.b.WriteString(xml.Header)
	w.in("wsdl:definitions", "name", "Messaging", "targetNamespace", Namespace,
		"xmlns:tns", Namespace, "xmlns:xs", "http://www.w3.org/2001/XMLSchema", "xmlns:wsdl", "http://schemas.xmlsoap.org/wsdl/",
		"xmlns:soap", "http://schemas.xmlsoap.org/wsdl/soap/", "xmlns:soap12", "http://schemas.xmlsoap.org/wsdl/soap12/")
	w.types(all)
	w.messages(all)
	w.portType(all)
	w.binding("MessagingSoap11", "soap", all)
	w.binding("MessagingSoap12", "soap12", all)
	w.in("wsdl:service", "name", "Messaging")
	for _, port := range [][2]string{{"MessagingSoap11", "soap"}, {"MessagingSoap12", "soap12"}} {
		w.in("wsdl:port", "name", port[0], "binding", "tns:"+port[0])
		w.leaf(port[1]+":address", "location", address)
		w.out()
	}
	w.out()
	w.out()
	return w.b.Bytes()
}

// writer writes indented elements.
type writer struct {
	b     bytes.Buffer
	open  []string
	typed map[string]bool // the named types there are
}

// tag writes a start tag, attributes as name, value, name, value.
func (w *writer) tag(name, end string, attrs []string) {
	w.b.WriteString(strings.Repeat("  ", len(w.open)) + "<" + name)
	for i := 0; i+1 < len(attrs); i += 2 {
		w.b.WriteString(" " + attrs[i] + `="`)
		escape(&w.b, attrs[i+1])
		w.b.WriteString(`"`)
	}
	w.b.WriteString(end + "\n")
}

func (w *writer) in(name string, attrs ...string) {
	w.tag(name, ">", attrs)
	w.open = append(w.open, name)
}

func (w *writer) out() {
	last := len(w.open) - 1
	name := w.open[last]
	w.open = w.open[:last]
	w.b.WriteString(strings.Repeat("  ", last) + "</" + name + ">\n")
}

func (w *writer) leaf(name string, attrs ...string) { w.tag(name, "/>", attrs) }

// types writes the schema: named types first, then an element for the header,
// each request and each answer.
func (w *writer) types(all []operation) {
	w.in("wsdl:types")
	w.in("xs:schema", "targetNamespace", Namespace, "elementFormDefault", "qualified")
	for _, o := range all {
		w.named(o.children)
	}
	w.global(authHeader, credentials())
	for _, o := range all {
		w.global(o.name, o.children)
		w.global(o.answerName(), answered())
	}
	w.out()
	w.out()
}

// named writes the types that elements share, each once.
func (w *writer) named(list []element) {
	for _, e := range list {
		if e.typeName == "" || w.typed[e.typeName] {
			continue
		}
		w.typed[e.typeName] = true
		w.in("xs:complexType", "name", e.typeName)
		w.sequence(e.children)
		w.out()
	}
}

func (w *writer) global(name string, children []element) {
	w.in("xs:element", "name", name)
	w.in("xs:complexType")
	w.sequence(children)
	w.out()
	w.out()
}

func (w *writer) sequence(list []element) {
	w.in("xs:sequence")
	for _, e := range list {
		w.element(e)
	}
	w.out()
}

func (w *writer) element(e element) {
	attrs := []string{"name", e.name}
	if e.optional {
		attrs = append(attrs, "minOccurs", "0")
	}
	if e.many() > 1 {
		attrs = append(attrs, "maxOccurs", strconv.Itoa(e.many()))
	}
	switch {
	case e.typeName != "":
		w.leaf("xs:element", append(attrs, "type", "tns:"+e.typeName)...)
	case !e.kind.restricted():
		w.leaf("xs:element", append(attrs, "type", "xs:"+e.kind.xsd)...)
	default:
		w.in("xs:element", attrs...)
		w.restriction(e.kind)
		w.out()
	}
}

func (w *writer) restriction(k kind) {
	w.in("xs:simpleType")
	w.in("xs:restriction", "base", "xs:"+k.xsd)
	for _, one := range k.enumerated {
		w.leaf("xs:enumeration", "value", one)
	}
	if k.least != nil {
		w.leaf("xs:minInclusive", "value", strconv.FormatInt(*k.least, 10))
	}
	if k.most != nil {
		w.leaf("xs:maxInclusive", "value", strconv.FormatInt(*k.most, 10))
	}
	w.out()
	w.out()
}

func (w *writer) messages(all []operation) {
	message := func(name, part, element string) {
		w.in("wsdl:message", "name", name)
		w.leaf("wsdl:part", "name", part, "element", "tns:"+element)
		w.out()
	}
	message("Auth", authHeader, authHeader)
	for _, o := range all {
		message(o.name+"In", "parameters", o.name)
		message(o.name+"Out", "parameters", o.answerName())
	}
}

func (w *writer) portType(all []operation) {
	w.in("wsdl:portType", "name", "Messaging")
	for _, o := range all {
		w.in("wsdl:operation", "name", o.name)
		w.in("wsdl:documentation")
		w.b.WriteString(strings.Repeat("  ", len(w.open)) + o.summary + "\n")
		w.out()
		w.leaf("wsdl:input", "message", "tns:"+o.name+"In")
		w.leaf("wsdl:output", "message", "tns:"+o.name+"Out")
		w.out()
	}
	w.out()
}

// binding writes the operations over HTTP in a version of SOAP.
func (w *writer) binding(name, prefix string, all []operation) {
	w.in("wsdl:binding", "name", name, "type", "tns:Messaging")
	w.leaf(prefix+":binding", "style", "document", "transport", "http://schemas.xmlsoap.org/soap/http")
	for _, o := range all {
		w.in("wsdl:operation", "name", o.name)
		w.leaf(prefix+":operation", "soapAction", o.soapAction(), "style", "document")
		w.in("wsdl:input")
		w.leaf(prefix+":header", "message", "tns:Auth", "part", authHeader, "use", "literal")
		w.leaf(prefix+":body", "parts", "parameters", "use", "literal")
		w.out()
		w.in("wsdl:output")
		w.leaf(prefix+":body", "parts", "parameters", "use", "literal")
		w.out()
		w.out()
	}
	w.out()
}
