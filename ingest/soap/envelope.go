package soap

import "fmt"

// envelope is a parsed SOAP request.
type envelope struct {
	version version
	auth    *node // the header block; nil: there is none
	request *node // the element in the Body
}

// open reads an envelope. The error is a *fault in the envelope's version, or
// in the one given where the body tells none.
func open(raw []byte, contentType string) (envelope, error) {
	e := envelope{version: versionOf(contentType)}
	utf8, err := asUTF8(raw, contentType)
	if err != nil {
		return e, e.sender(err.Error())
	}
	root, err := parse(utf8)
	if err != nil {
		return e, e.sender(err.Error())
	}
	if root.name.Local != "Envelope" {
		return e, e.sender(fmt.Sprintf("The root element is %s, not an Envelope.", quoteClipped(root.name.Local)))
	}
	switch root.name.Space {
	case soap11.namespace():
		e.version = soap11
	case soap12.namespace():
		e.version = soap12
	default:
		return e, &fault{version: soap11, code: versionMismatch, reason: fmt.Sprintf("The namespace of the Envelope is %s, neither that of SOAP 1.1 nor 1.2.", quoteClipped(root.name.Space))}
	}
	return e, e.fill(root)
}

// fill finds the parts of the envelope.
func (e *envelope) fill(root *node) error {
	bodies := 0
	for i, part := range root.children {
		switch {
		case part.is(e.version.namespace(), "Header") && i == 0:
			if err := e.header(part); err != nil {
				return err
			}
		case part.is(e.version.namespace(), "Body") && bodies == 0:
			bodies++
			if len(part.children) != 1 {
				return e.sender(fmt.Sprintf("The Body has %d elements, not one (byte %d).", len(part.children), part.offset))
			}
			e.request = part.children[0]
		default:
			return e.sender(fmt.Sprintf("The Envelope must hold a Header and a Body, not %s (byte %d).", quoteClipped(part.name.Local), part.offset))
		}
	}
	if e.request == nil {
		return e.sender("The Envelope has no Body.")
	}
	return nil
}

// header finds the credentials and refuses unknown blocks with mustUnderstand.
func (e *envelope) header(h *node) error {
	for _, block := range h.children {
		switch {
		case block.is(Namespace, authHeader) && e.auth == nil:
			e.auth = block
		case block.is(Namespace, authHeader):
			return e.sender(fmt.Sprintf("The header %s is given twice (byte %d).", authHeader, block.offset))
		case e.version.required(block) && e.version.forUs(block):
			return &fault{version: e.version, code: mustUnderstand, reason: fmt.Sprintf("The header %s must be understood, and is not (byte %d).", quoteClipped(block.name.Local), block.offset)}
		}
	}
	return nil
}

// sender returns a fault with the code for the sender.
func (e *envelope) sender(reason string) *fault {
	return &fault{version: e.version, code: senderFault, reason: reason}
}
