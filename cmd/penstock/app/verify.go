package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/delivery/checkpoints"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/ledger"
)

// ledgerCommand groups the commands for ledgers.
type ledgerCommand struct {
	Verify verifyCommand `cmd:"" help:"Verify stored ledgers, an exported ledger or an exported history."`
}

type verifyCommand struct {
	Files  []string `arg:"" optional:"" help:"Files from /ledgers/…/export and /ledgers/tokens/…/history; without one, the stored ledgers are verified." placeholder:"FILE"`
	Config string   `help:"The configuration file that names the store." placeholder:"FILE"`
	Ledger string   `help:"Verify only the stored ledger with this id or hash." placeholder:"ID"`
	Key    string   `help:"The public key of the ledger, from a trusted source; default: the key in the file." placeholder:"KEY"`
	Head   []string `help:"A file with an earlier signed head (meta.signature of a history), which the ledger must contain." placeholder:"FILE"`
}

// Run prints a line for each ledger or file and each fault. It fails if there is a fault.
func (v verifyCommand) Run(env client.Environment) error {
	heads, err := readAll(v.Head)
	if err != nil {
		return err
	}
	good := true
	if len(v.Files) == 0 {
		good, err = v.verifyStore(env, heads)
	}
	for _, name := range v.Files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		r, err := v.verifyFile(text, heads)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		good = report(env.Stdout, name, r) && good
	}
	if err == nil && !good {
		err = errReported
	}
	return err
}

func readAll(names []string) (texts []string, err error) {
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(b))
	}
	return texts, nil
}

// verifyFile verifies an export, whose first line has a head and a ledger, or a history.
func (v verifyCommand) verifyFile(text []byte, heads []string) (ledger.Report, error) {
	data, _, _ := bytes.Cut(text, []byte("\n"))
	if bytes.Contains(data, []byte(`"head"`)) && bytes.Contains(data, []byte(`"ledger"`)) && !bytes.Contains(data, []byte(`"meta"`)) {
		return ledger.VerifyExport(bytes.NewReader(text), v.Key, heads...)
	}
	return ledger.VerifyHistory(text, v.Key, heads...)
}

// verifyStore verifies the stored ledgers.
func (v verifyCommand) verifyStore(env client.Environment, heads []string) (good bool, err error) {
	cfg, err := config.Load(v.Config, env.Variables)
	if err != nil {
		return false, err
	}
	if err := checkDatabases(cfg); err != nil {
		return false, err
	}
	keys, err := masterKeys(cfg)
	if err != nil {
		return false, err
	}
	var stores backends
	defer func() { _ = stores.close() }()
	if err := stores.openRecords(env.Context, cfg, slog.New(slog.DiscardHandler)); err != nil {
		return false, err
	}
	result, err := checkpoints.Read(filepath.Join(cfg.DataDir, headsFile))
	if err != nil {
		return false, err
	}
	s, _, err := newLedgers(stores.records, keys, ledger.HeadsOf(result), nil, nil, false)
	if err != nil {
		return false, err
	}
	accounts, err := stores.records.Accounts.Accounts(env.Context)
	if err != nil {
		return false, err
	}
	lost, err := s.LostLedgers(env.Context)
	if err != nil {
		return false, err
	}
	for _, problem := range lost {
		fmt.Fprintln(env.Stdout, problem)
	}
	good, found := len(lost) == 0, 0
	progress := client.NewProgress(env, "verify", func(n int64) string { return fmt.Sprintf("%d accounts", n) })
	defer progress.End()
	progress.Expect(int64(len(accounts)))
	for _, a := range accounts {
		n, ok, err := v.verifyAccount(env.Context, progress.ResultWriter(env.Stdout), s, a, heads)
		progress.Add(1)
		if err != nil {
			return false, err
		}
		found, good = found+n, good && ok
	}
	if v.Ledger != "" && found == 0 {
		return false, fmt.Errorf("no account has a ledger %q", v.Ledger)
	}
	return good, nil
}

func (v verifyCommand) verifyAccount(ctx context.Context, writer io.Writer, s *ledger.Service, a account.Account, heads []string) (found int, good bool, err error) {
	ledgers, err := s.Ledgers(ctx, a.ID)
	if err != nil {
		return 0, false, err
	}
	good = true
	for _, l := range ledgers {
		if v.Ledger != "" && v.Ledger != l.ID && v.Ledger != l.Hash {
			continue
		}
		found++
		r, err := s.Verify(ctx, a.ID, l.ID, heads...)
		if err != nil {
			return found, false, err
		}
		if v.Key != "" && v.Key != r.Key {
			fmt.Fprintln(writer, "the stored key differs from --key")
			good = false
		}
		good = report(writer, a.Name+"/"+l.ID, r) && good
	}
	return found, good, nil
}

// report prints the faults of a ledger and returns false, or prints one line and returns true if the
// ledger has no faults.
func report(writer io.Writer, name string, r ledger.Report) bool {
	for _, f := range r.Faults {
		fmt.Fprintf(writer, "%s: %s\n", name, f)
	}
	if unlisted := r.Count - len(r.Faults); unlisted > 0 {
		fmt.Fprintf(writer, "%s: %d more faults\n", name, unlisted)
	}
	if r.Count > 0 {
		return false
	}
	line := fmt.Sprintf("%s: %d entries match their signatures, %s", name, r.Entries, r.Scope)
	if r.Unsigned > 0 {
		line += fmt.Sprintf("; %d entries are not signed yet", r.Unsigned)
	}
	if !r.Pinned {
		line += "; verified with its own key, " + r.Key
	}
	fmt.Fprintln(writer, line)
	return true
}
