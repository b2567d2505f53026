package soap

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/penstock/penstock/decoders"
)

// The limits of a document.
const (
	maxBody  = 256 << 10 // bytes, inflated and as UTF-8
	maxDepth = 32        // elements within elements
	maxNodes = 2000      // elements
)

// node is an element of a document.
type node struct {
	name     xml.Name
	attrs    []xml.Attr
	text     string // without the text of children; set at the end of the element
	raw      []byte // the text read so far; nil after the end of the element
	children []*node
	offset   int64 // of its tag, in bytes of UTF-8
}

func (n *node) hasName(space, local string) bool {
	return n.name.Space == space && n.name.Local == local
}

// attr returns the value of an attribute, "" if it is missing.
func (n *node) attr(space, local string) string {
	for _, a := range n.attrs {
		if a.Name.Space == space && a.Name.Local == local {
			return strings.TrimSpace(a.Value)
		}
	}
	return ""
}

// unreadable is the reason why a body is not an envelope, with the offset of the error.
type unreadable struct {
	offset int64
	reason string
}

// Error returns the reason and the offset.
func (u *unreadable) Error() string { return fmt.Sprintf("%s (byte %d)", u.reason, u.offset) }

// parse parses a document. The error is an *unreadable.
func parse(raw []byte) (*node, error) {
	p := parser{d: xml.NewDecoder(bytes.NewReader(raw)), source: raw}
	p.d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // raw is UTF-8 already
	for {
		p.offset = p.d.InputOffset()
		token, err := p.d.Token()
		switch {
		case err == nil:
			err = p.processToken(token)
		case errors.Is(err, io.EOF):
			if p.root == nil {
				return nil, p.errorf("The body is empty.")
			}
			return p.root, nil
		default:
			reason := "The XML cannot be read: " + err.Error() + "."
			if e, ok := errors.AsType[*xml.SyntaxError](err); ok {
				reason = "The XML is not well-formed: " + e.Msg + "."
			}
			err = &unreadable{offset: p.d.InputOffset(), reason: reason}
		}
		if err != nil {
			return nil, err
		}
	}
}

// parser builds the tree of a document.
type parser struct {
	d         *xml.Decoder
	source    []byte
	offset    int64 // of the current token
	root      *node
	openNodes []*node // the ancestors of the current token, outermost first
	nodes     int
}

func (p *parser) errorf(format string, args ...any) error {
	return &unreadable{offset: p.offset, reason: fmt.Sprintf(format, args...)}
}

func (p *parser) processToken(token xml.Token) error {
	if _, comment := token.(xml.Comment); !comment {
		if reference := decoders.SurrogateReference(p.source[p.offset:p.d.InputOffset()]); reference != "" {
			return p.errorf("The XML is not well-formed: the reference %s is half of a surrogate pair.", reference)
		}
	}
	switch t := token.(type) {
	case xml.StartElement:
		return p.start(t)
	case xml.EndElement:
		n := p.openNodes[len(p.openNodes)-1]
		n.text, n.raw = string(n.raw), nil
		p.openNodes = p.openNodes[:len(p.openNodes)-1]
	case xml.CharData:
		if len(p.openNodes) > 0 {
			n := p.openNodes[len(p.openNodes)-1]
			n.raw = append(n.raw, t...)
		} else if len(bytes.Trim(t, " \t\r\n")) > 0 {
			return p.errorf("There is text outside the root element.")
		}
	case xml.Directive:
		return p.errorf("A document type declaration is not allowed.")
	case xml.ProcInst:
		if t.Target != "xml" || p.offset != 0 {
			return p.errorf("Processing instructions are not allowed.")
		}
	}
	return nil
}

func (p *parser) start(t xml.StartElement) error {
	p.nodes++
	switch {
	case len(p.openNodes) == 0 && p.root != nil:
		return p.errorf("The document has a second root element.")
	case len(p.openNodes) == maxDepth:
		return p.errorf("Elements are nested deeper than %d.", maxDepth)
	case p.nodes > maxNodes:
		return p.errorf("The document has more than %d elements.", maxNodes)
	}
	n := &node{name: t.Name, attrs: t.Attr, offset: p.offset}
	if len(p.openNodes) == 0 {
		p.root = n
	} else {
		parent := p.openNodes[len(p.openNodes)-1]
		parent.children = append(parent.children, n)
	}
	p.openNodes = append(p.openNodes, n)
	return nil
}
