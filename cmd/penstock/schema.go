package main

import (
	document "github.com/penstock/penstock/config/inventory"
)

type schemaCommand struct{}

// Run prints the JSON Schema of inventories, for editors.
func (schemaCommand) Run(w world) error {
	text, err := document.Schema()
	if err == nil {
		_, err = w.stdout.Write(text)
	}
	return err
}
