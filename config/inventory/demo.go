package inventory

import (
	_ "embed" // the demo

	"github.com/penstock/penstock/config/strict"
)

//go:embed demo.yaml
var demoYAML []byte

// Demo returns the inventory of a gateway with nothing configured. token is the only token
// of its account, and the SOAP password.
func Demo(token string) Document {
	var d Document
	_ = strict.Decode(demoYAML, &d, strict.Options{}) // TestDemoIsValid parses it
	d.Accounts[0].Tokens[0].Token = token
	d.Accounts[0].SOAP.Password = token
	return d
}
