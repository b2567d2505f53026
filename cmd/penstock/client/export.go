package client

import (
	"encoding/json"
	"fmt"
	"net/http"

	document "github.com/penstock/penstock/config/inventory"
)

// Export prints the current records of a gateway as an inventory.
type Export struct {
	Document string `help:"The name of the document; required if there are several." placeholder:"NAME"`
	Secrets  bool   `help:"Print secrets in place of masks, for another gateway. Tokens and passwords are hashes."`
	Flags
}

// Run prints the document.
func (e Export) Run(env Environment) error {
	query := queryOf(map[string]string{"present": "true", "document": e.Document})
	comment := "The gateway that exported it replaces masks by their secrets."
	if e.Secrets {
		query.Set("secrets", "true")
		comment = "It contains secrets."
	}
	body, err := e.Request(env, "the export", http.MethodGet, "/admin/inventory?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	if e.JSON {
		return printLine(env, "%s", body)
	}
	var d document.Document
	if err := json.Unmarshal(body, &d); err != nil {
		return fmt.Errorf("the export: %w", err)
	}
	text, err := document.EncodeYAML(d, "The current records of document "+d.Owner()+". "+comment)
	if err == nil {
		_, err = env.Stdout.Write(text)
	}
	return err
}
