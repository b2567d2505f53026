package client

import (
	"encoding/json"
	"fmt"
	"net/http"

	document "github.com/penstock/penstock/config/inventory"
)

// Export writes the present state of a gateway as an inventory.
type Export struct {
	Document string `help:"The document; needed if there are several." placeholder:"NAME"`
	Flags
}

// Run prints the document, with secrets masked: the gateway that wrote a mask takes it
// for the secret.
func (e Export) Run(w Environment) error {
	q := given(map[string]string{"present": "true", "document": e.Document})
	body, err := e.Ask(w, "the export", http.MethodGet, "/admin/inventory?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	var d document.Document
	if err := json.Unmarshal(body, &d); err != nil {
		return fmt.Errorf("the export: %w", err)
	}
	text, err := document.EncodeYAML(d, "The document "+d.Owner()+" as it is now. The gateway that exported it takes a mask for the secret it hides.")
	if err == nil {
		_, err = w.Stdout.Write(text)
	}
	return err
}
