package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay/db"
)

// recoverCommand makes a gateway process its journal again after its database was
// restored, or processes what the journal of a lost gateway has left.
type recoverCommand struct {
	Journal      string `help:"Process what the gateway with this data directory accepted and did not process; it must not run." placeholder:"DIR"`
	AcceptServer bool   `help:"Accept the PostgreSQL server of database.url, although the gateways have used a newer one or another."`
	Config       string `help:"With --journal, and with --accept-server if no gateway runs: the configuration file of the gateways." placeholder:"FILE"`
	client.Flags
}

// Run recovers and prints how many events were processed.
func (r recoverCommand) Run(w client.Environment) error {
	if r.Journal != "" {
		return recoverJournal(w, r.Journal, r.Config)
	}
	var request []byte
	if r.AcceptServer {
		if accepted, err := r.acceptWithoutGateway(w); accepted || err != nil {
			return err
		}
		request = []byte(`{"accept_server": true}`)
	}
	body, err := r.Ask(w, "recover", http.MethodPost, "/admin/recover", request)
	if err != nil {
		return err
	}
	var answer admin.Recovered
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("recover: the answer is not that of a gateway: %w", err)
	}
	for _, text := range answer.Ledgers {
		if _, err := fmt.Fprintln(w.Stdout, text); err != nil {
			return err
		}
	}
	if answer.Unknown > 0 {
		if _, err := fmt.Fprintf(w.Stdout, "%d parts of messages were due before processing stopped: they may have been sent, and are unknown until you resend them\n", answer.Unknown); err != nil {
			return err
		}
	}
	if missing := answer.Missing; missing != nil {
		if _, err := fmt.Fprintf(w.Stdout, "records that did not come through the journal (REST, SOAP, the admin API) may be missing if they were written between %s and %s\n",
			missing.Since, missing.Until); err != nil {
			return err
		}
	}
	if answer.Server != "" {
		if _, err := fmt.Fprintf(w.Stdout, "the PostgreSQL server %s is used from now on\n", answer.Server); err != nil {
			return err
		}
	}
	count := fmt.Sprintf("%d events were", answer.Count)
	if answer.Count == 1 {
		count = "1 event was"
	}
	_, err = fmt.Fprintln(w.Stdout, count, "processed again; processing goes on")
	return err
}

// acceptWithoutGateway accepts the PostgreSQL server that a gateway refuses, which cannot
// start for that reason. It does nothing if the gateway runs.
func (r recoverCommand) acceptWithoutGateway(w client.Environment) (accepted bool, err error) {
	if r.Server != "" {
		return false, nil
	}
	cfg, err := config.Load(r.Config, w.Variables)
	if err != nil {
		return false, err
	}
	unlock, err := lockJournals(cfg.DataDir)
	if errors.Is(err, journal.ErrLocked) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("recover: %w", err)
	}
	defer unlock()
	p, err := openPrimary(w.Context, cfg, "", slog.New(slog.DiscardHandler))
	if err != nil {
		return false, fmt.Errorf("recover: %w", err)
	}
	database, err := db.Connect(w.Context, db.Options{URL: cfg.Database.URL, Dir: cfg.DataDir, Admit: p.admit})
	if err == nil {
		_ = database.Close()
		return false, errors.New("recover: the server of database.url is not refused")
	}
	refused, ok := errors.AsType[*db.ServerRefused](err)
	if !ok {
		return false, ofDatabaseURL(err)
	}
	server, err := p.acceptRefused(refused)
	if err != nil {
		return false, fmt.Errorf("recover: %w", err)
	}
	_, err = fmt.Fprintf(w.Stdout, "the PostgreSQL server %s is used from now on; start the gateway\n", server)
	return true, err
}
