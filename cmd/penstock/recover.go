package main

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// recoverCommand has a gateway whose database is in an earlier state process its
// journal again.
type recoverCommand struct{ adminFlags }

// Run recovers and prints how many events were processed again.
func (r recoverCommand) Run(w world) error {
	body, err := r.ask(w, "recover", http.MethodPost, "/admin/recover", nil)
	if err != nil {
		return err
	}
	var answer struct {
		Count int `json:"count"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("recover: the answer is not that of a gateway: %w", err)
	}
	_, err = fmt.Fprintf(w.stdout, "%d events were processed again; processing goes on\n", answer.Count)
	return err
}
