package app

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/ingest/admin"
)

// recoverCommand makes a gateway process its journal again after its database was
// restored, or processes what the journal of a lost gateway has left.
type recoverCommand struct {
	Journal string `help:"Process what the gateway with this data directory accepted and did not process; it must not run." placeholder:"DIR"`
	Config  string `help:"With --journal: the configuration file of the gateways." placeholder:"FILE"`
	client.Flags
}

// Run recovers and prints how many events were processed.
func (r recoverCommand) Run(w client.Environment) error {
	if r.Journal != "" {
		return recoverJournal(w, r.Journal, r.Config)
	}
	body, err := r.Ask(w, "recover", http.MethodPost, "/admin/recover", nil)
	if err != nil {
		return err
	}
	var answer admin.Recovered
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("recover: the answer is not that of a gateway: %w", err)
	}
	for _, one := range answer.Ledgers {
		if _, err := fmt.Fprintln(w.Stdout, one); err != nil {
			return err
		}
	}
	if answer.Unknown > 0 {
		if _, err := fmt.Fprintf(w.Stdout, "%d parts of messages were due before processing stopped: they may have been sent, and are unknown until you resend them\n", answer.Unknown); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w.Stdout, "%d events were processed again; processing goes on\n", answer.Count)
	return err
}
