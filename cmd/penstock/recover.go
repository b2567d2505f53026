package main

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/penstock/penstock/ingest/admin"
)

// recoverCommand makes a gateway process its journal again after its database was
// restored.
type recoverCommand struct{ adminFlags }

// Run recovers and prints how many events were processed again.
func (r recoverCommand) Run(w world) error {
	body, err := r.ask(w, "recover", http.MethodPost, "/admin/recover", nil)
	if err != nil {
		return err
	}
	var answer admin.Recovered
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("recover: the answer is not that of a gateway: %w", err)
	}
	for _, one := range answer.Ledgers {
		if _, err := fmt.Fprintln(w.stdout, one); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w.stdout, "%d events were processed again; processing goes on\n", answer.Count)
	return err
}
