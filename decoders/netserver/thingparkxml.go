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

// thingParkJSON returns the body as JSON, so that both forms have one parser. In XML, an
// element with children becomes an object, any other element a string, and the children of
// Lrrs a list.
func thingParkJSON(body []byte) ([]byte, error) {
	trimmed := bytes.TrimLeft(body, " \t\r\n\xef\xbb\xbf")
	if len(trimmed) == 0 || trimmed[0] != '<' {
		return body, nil
	}
	x := xmlConverter{source: trimmed, decoder: xml.NewDecoder(bytes.NewReader(trimmed))}
	err := x.convertElement("", 0)
	return x.buffer.Bytes(), err
}

// lrrs is the element whose children are a list.
const lrrs = "Lrrs"

// xmlConverter converts an XML document to JSON. It reads raw tokens, because namespaces do
// not matter, and checks the nesting itself.
type xmlConverter struct {
	source  []byte
	decoder *xml.Decoder
	buffer  bytes.Buffer
}

func (x *xmlConverter) fail(reason string) error {
	return &decoders.Error{Format: string(ThingPark), Offset: int(x.decoder.InputOffset()), Reason: reason}
}

// convertElement converts the content of an element, up to its end tag. The document itself has the
// name "".
func (x *xmlConverter) convertElement(name string, depth int) error {
	var text []byte
	children := 0
	for {
		start := x.decoder.InputOffset()
		token, err := x.decoder.RawToken()
		switch {
		case errors.Is(err, io.EOF) && depth == 0 && children > 0:
			x.buffer.WriteByte('}')
			return nil
		case err != nil:
			return x.fail("is not an XML document: " + err.Error())
		}
		if _, isComment := token.(xml.Comment); !isComment {
			if reference := decoders.SurrogateReference(x.source[start:x.decoder.InputOffset()]); reference != "" {
				return x.fail("is not an XML document: the reference " + reference + " is half of a surrogate pair")
			}
		}
		switch token := token.(type) {
		case xml.Directive:
			return x.fail("has a document type declaration, which is refused")
		case xml.CharData:
			text = append(text, token...)
		case xml.StartElement:
			switch children++; {
			case depth == 0 && children > 1:
				return x.fail("has more than one root element")
			case depth >= jsonbody.MaxDepth/2:
				return x.fail("nested too deep")
			case children > 1:
				x.buffer.WriteByte(',')
			case name == lrrs:
				x.buffer.WriteString(`{"Lrr":[`)
			default:
				x.buffer.WriteByte('{')
			}
			if name != lrrs {
				x.writeString([]byte(token.Name.Local))
				x.buffer.WriteByte(':')
			}
			if err := x.convertElement(token.Name.Local, depth+1); err != nil {
				return err
			}
		case xml.EndElement:
			switch {
			case depth == 0 || token.Name.Local != name:
				return x.fail("ends an element that is not open: " + token.Name.Local)
			case children == 0:
				x.writeString(bytes.TrimSpace(text))
			case name == lrrs:
				x.buffer.WriteString("]}")
			default:
				x.buffer.WriteByte('}')
			}
			return nil
		}
	}
}

// writeString writes a JSON string. Most strings need no escapes and no allocation.
func (x *xmlConverter) writeString(s []byte) {
	quoted := s
	if bytes.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		quoted, _ = json.Marshal(string(s)) // strings always marshal
		quoted = quoted[1 : len(quoted)-1]
	}
	x.buffer.WriteByte('"')
	x.buffer.Write(quoted)
	x.buffer.WriteByte('"')
}
