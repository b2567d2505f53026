package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay/db"
)

// recoverCommand makes a gateway process its journal again after its database was restored, or
// processes the remaining entries in the journal of a lost gateway.
type recoverCommand struct {
	Journal      string `help:"Process the remaining entries in the journal of a gateway that does not run, which has this data directory." placeholder:"DIR"`
	AcceptServer bool   `help:"Use the PostgreSQL server of database.url from now on, although the gateways have used another or newer server."`
	Config       string `help:"With --journal, and with --accept-server if no gateway runs: the configuration file of the gateways." placeholder:"FILE"`
	client.Flags
}

// Run recovers and prints how many events were processed.
func (r recoverCommand) Run(env client.Environment) error {
	if r.Journal != "" {
		return recoverJournal(env, r.Journal, r.Config)
	}
	var request []byte
	if r.AcceptServer {
		if accepted, err := r.acceptWithoutGateway(env); accepted || err != nil {
			return err
		}
		request = []byte(`{"accept_server": true}`)
	}
	body, err := r.Request(env, "recover", http.MethodPost, "/admin/recover", request)
	if err != nil {
		return err
	}
	var answer admin.RecoveryResult
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("recover: unexpected answer, perhaps not from a gateway: %w", err)
	}
	var b strings.Builder
	for _, ledger := range answer.Ledgers {
		b.WriteString(ledger + "\n")
	}
	if answer.Unknown > 0 {
		fmt.Fprintf(&b, "%d parts of messages were due before processing stopped: they may have been sent, and their state is unknown until you resend them\n", answer.Unknown)
	}
	if missing := answer.Missing; missing != nil {
		fmt.Fprintf(&b, "records that did not come through the journal (REST, SOAP, the admin API) may be missing if they were written between %s and %s\n",
			missing.Since, missing.Until)
	}
	if answer.Server != "" {
		fmt.Fprintf(&b, "the PostgreSQL server %s is used from now on\n", answer.Server)
	}
	count := fmt.Sprintf("%d events were", answer.Count)
	if answer.Count == 1 {
		count = "1 event was"
	}
	_, err = fmt.Fprintln(env.Stdout, b.String()+count, "processed again; processing continues")
	return err
}

// acceptWithoutGateway accepts the PostgreSQL server with which the gateway cannot start, because it
// refuses the server. It does nothing if the gateway runs.
func (r recoverCommand) acceptWithoutGateway(env client.Environment) (accepted bool, err error) {
	if r.Server != "" {
		return false, nil
	}
	cfg, err := config.Load(r.Config, env.Variables)
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
	p, err := openPrimary(env.Context, cfg, "", slog.New(slog.DiscardHandler))
	if err != nil {
		return false, fmt.Errorf("recover: %w", err)
	}
	database, err := db.Connect(env.Context, db.Options{URL: cfg.Database.URL, Dir: cfg.DataDir, Admit: p.admit})
	if err == nil {
		_ = database.Close()
		return false, errors.New("recover: the server of database.url is not refused")
	}
	refused, ok := errors.AsType[*db.ServerRefused](err)
	if !ok {
		return false, databaseURLError(err)
	}
	server, err := p.acceptRefused(refused)
	if err != nil {
		return false, fmt.Errorf("recover: %w", err)
	}
	_, err = fmt.Fprintf(env.Stdout, "the PostgreSQL server %s is used from now on; start the gateway\n", server)
	return true, err
}
