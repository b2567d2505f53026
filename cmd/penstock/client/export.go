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
	Secrets  bool   `help:"Show secrets instead of masks, for another gateway. Tokens and passwords are hashes."`
	Flags
}

// Run prints the document. The gateway that wrote a mask takes it for the secret; another
// gateway does not.
func (e Export) Run(w Environment) error {
	query := given(map[string]string{"present": "true", "document": e.Document})
	comment := "The gateway that exported it takes a mask for the secret it hides."
	if e.Secrets {
		query.Set("secrets", "true")
		comment = "It contains secrets."
	}
	body, err := e.Ask(w, "the export", http.MethodGet, "/admin/inventory?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	if e.JSON {
		return printLine(w, "%s", body)
	}
	var d document.Document
	if err := json.Unmarshal(body, &d); err != nil {
		return fmt.Errorf("the export: %w", err)
	}
	text, err := document.EncodeYAML(d, "The document "+d.Owner()+" as it is now. "+comment)
	if err == nil {
		_, err = w.Stdout.Write(text)
	}
	return err
}
