package app

import (
	"github.com/penstock/penstock/cmd/penstock/client"
	document "github.com/penstock/penstock/config/inventory"
)

type schemaCommand struct{}

// Run prints the JSON Schema of inventories, for editors.
func (schemaCommand) Run(w client.Environment) error {
	text, err := document.Schema()
	if err == nil {
		_, err = w.Stdout.Write(text)
	}
	return err
}
