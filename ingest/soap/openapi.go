package soap

import (
	"bytes"
	_ "embed" // the documents next to the handlers
)

//go:embed openapi.yaml
var contract []byte

// OpenAPI returns this surface's contract, an OpenAPI 3.0 document in YAML; the
// operations and their types are in the WSDL.
func OpenAPI() []byte { return contract }

//go:embed messaging.wsdl
var description []byte

// wsdl returns the description of the operations in WSDL 1.1, with the address of the ports.
func wsdl(address string) []byte {
	var escaped bytes.Buffer
	writeEscaped(&escaped, address)
	return bytes.ReplaceAll(description, []byte("ADDRESS"), escaped.Bytes())
}
