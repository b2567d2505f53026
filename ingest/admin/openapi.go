package admin

import _ "embed" // the document next to the handlers

//go:embed openapi.yaml
var contract []byte

// OpenAPI returns the contract of the surface, an OpenAPI 3.0 document in YAML.
func OpenAPI() []byte { return contract }
