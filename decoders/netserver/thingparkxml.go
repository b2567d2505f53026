package netserver

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// thingParkJSON returns the body as JSON. An XML document becomes objects and
// strings, so that one parser reads both: elements with children are objects,
// the others strings, the children of Lrrs a list.
func thingParkJSON(body []byte) ([]byte, error) {
	trimmed := bytes.TrimLeft(body, " \t\r\n\xef\xbb\xbf")
	if len(trimmed) == 0 || trimmed[0] != '<' {
		return body, nil
	}
	x := xmlBody{d: xml.NewDecoder(bytes.NewReader(trimmed))}
	for {
		start := x.d.InputOffset()
		tok, err := x.d.RawToken()
		switch {
		case errors.Is(err, io.EOF) && x.ended:
			return x.buffer.Bytes(), nil
		case err != nil:
			return nil, x.fail("is not an XML document: " + err.Error())
		}
		if _, comment := tok.(xml.Comment); !comment {
			if reference := decoders.SurrogateReference(trimmed[start:x.d.InputOffset()]); reference != "" {
				return nil, x.fail("is not an XML document: the reference " + reference + " is half of a surrogate pair")
			}
		}
		switch tok := tok.(type) {
		case xml.Directive:
			err = x.fail("has a document type declaration, which is refused")
		case xml.StartElement:
			err = x.start(tok.Name.Local)
		case xml.EndElement:
			err = x.end(tok.Name.Local)
		case xml.CharData:
			if len(x.open) > 0 {
				top := &x.open[len(x.open)-1]
				top.text = append(top.text, tok...)
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// xmlBody is a document on its way to JSON. Raw tokens are enough: the name
// space is always the same, and the nesting is checked here.
type xmlBody struct {
	d      *xml.Decoder
	buffer bytes.Buffer
	open   []xmlElement
	ended  bool
}

type xmlElement struct {
	name     string
	text     []byte
	children int
	list     bool // its children are elements of a list
}

func (x *xmlBody) fail(reason string) error {
	return &decoders.Error{Format: string(ThingPark), Offset: int(x.d.InputOffset()), Reason: reason}
}

func (x *xmlBody) start(name string) error {
	switch {
	case x.ended:
		return x.fail("has more than one root element")
	case len(x.open) >= jsonbody.MaxDepth/2:
		return x.fail("nested too deep")
	case len(x.open) == 0:
		x.buffer.WriteByte('{')
		x.key(name)
	default:
		x.member(&x.open[len(x.open)-1], name)
	}
	x.open = append(x.open, xmlElement{name: name, list: name == "Lrrs"})
	return nil
}

// member opens a child: of an object under its name, of a list without.
func (x *xmlBody) member(parent *xmlElement, name string) {
	parent.children++
	switch {
	case parent.children > 1:
		x.buffer.WriteByte(',')
	case parent.list:
		x.buffer.WriteString(`{"Lrr":[`)
	default:
		x.buffer.WriteByte('{')
	}
	if !parent.list {
		x.key(name)
	}
}

func (x *xmlBody) key(name string) {
	x.string([]byte(name))
	x.buffer.WriteByte(':')
}

func (x *xmlBody) string(s []byte) {
	isEscaped := func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
	if !bytes.ContainsFunc(s, isEscaped) { // nearly always: nothing is copied
		x.buffer.WriteByte('"')
		x.buffer.Write(s)
		x.buffer.WriteByte('"')
		return
	}
	quoted, _ := json.Marshal(string(s)) // strings always marshal
	x.buffer.Write(quoted)
}

func (x *xmlBody) end(name string) error {
	if len(x.open) == 0 || x.open[len(x.open)-1].name != name {
		return x.fail("ends an element that is not open: " + name)
	}
	top := x.open[len(x.open)-1]
	x.open = x.open[:len(x.open)-1]
	switch {
	case top.children == 0:
		x.string(bytes.TrimSpace(top.text))
	case top.list:
		x.buffer.WriteString("]}")
	default:
		x.buffer.WriteByte('}')
	}
	if len(x.open) == 0 {
		x.buffer.WriteByte('}')
		x.ended = true
	}
	return nil
}
