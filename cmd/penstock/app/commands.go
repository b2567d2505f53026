// Package app implements the gateway and its commands. Most commands that do more than call a
// running gateway have a file of their own; wire.go, core.go and surfaces.go connect the parts
// of the gateway. Command penstock and the end-to-end tests run the package.
package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/penstock/penstock/cmd/penstock/client"
	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/delivery/codec"
)

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// commands declares the commands and the global options for kong.
type commands struct {
	Serve       serveCommand       `cmd:"" help:"Run the gateway."`
	Apply       client.Apply       `cmd:"" help:"Apply an inventory to a running gateway."`
	Export      client.Export      `cmd:"" help:"Print the current records of a running gateway as an inventory."`
	Schema      schemaCommand      `cmd:"" help:"Print the JSON Schema of inventories, for editors."`
	Get         client.Get         `cmd:"" aliases:"list" help:"List or show records of a running gateway: devices, rules, relays, sims, messages, credit and others."`
	Status      client.Status      `cmd:"" help:"Show the back ends of a running gateway, and the other gateways."`
	Tail        client.Tail        `cmd:"" help:"Print the events of a running gateway as they arrive."`
	Send        client.Send        `cmd:"" help:"Send an SMS through a running gateway."`
	Replay      client.Replay      `cmd:"" help:"Replay events or deliveries of a running gateway."`
	Decode      decodeCommand      `cmd:"" help:"Run a decoder on frames, without storing anything."`
	Dashboard   dashboardCommand   `cmd:"" help:"Print a Grafana dashboard for the sensors of a decoder."`
	Backup      backupCommand      `cmd:"" help:"Back up the data directory except the journal, even while the gateway runs."`
	Restore     restoreCommand     `cmd:"" help:"Restore a backup into the data directory of a stopped gateway."`
	Recover     recoverCommand     `cmd:"" help:"Process the journal again after the database was restored, then continue."`
	Migrate     migrateCommand     `cmd:"" help:"Migrate the database schema to this version; --status lists the migrations."`
	CheckConfig checkConfigCommand `cmd:"" name:"check-config" help:"Check a configuration file and its inventory, or an inventory."`
	Healthcheck client.Healthcheck `cmd:"" help:"Check whether a running gateway is alive."`
	User        client.User        `cmd:"" help:"Manage the users of the console and the admin API."`
	Token       client.Token       `cmd:"" help:"Manage the tokens of accounts."`
	Ledger      ledgerCommand      `cmd:"" help:"Verify ledgers and their exports."`
	Completion  completionCommand  `cmd:"" help:"Print a script that completes commands and options in bash, zsh or fish."`
	Help        helpCommand        `cmd:"" help:"Print the help of a command."`
	Man         manCommand         `cmd:"" hidden:"" help:"Print the manual page."`
	Version     versionCommand     `cmd:"" help:"Print the version."`

	PrintVersion kong.VersionFlag `name:"version" help:"Print the version."`
}

// Main runs the command of the process arguments and exits with its exit code.
func Main(version string) {
	if len(os.Args) == 2 && os.Args[1] == codec.WorkerCommand {
		os.Exit(workerMain())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(Run(os.Args[1:], client.Environment{
		Context: ctx, Variables: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Version: version,
	}))
}

// workerMain is the hidden command that runs JavaScript codecs for a gateway.
func workerMain() int {
	if err := codec.Work(os.Stdin, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "penstock:", err)
		return exitFailed
	}
	return exitDone
}

// Run runs one command and returns its exit code.
func Run(args []string, env client.Environment) int {
	var c commands
	exited, code := false, exitDone
	parser, err := kong.New(&c,
		kong.Name("penstock"), kong.Description("Webhook ingestion and relay gateway."),
		kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(env.Stdout, env.Stderr), kong.Vars{"version": versionText(env.Version)},
		kong.Exit(func(n int) { exited, code = true, n }),
	)
	if err != nil {
		_, _ = fmt.Fprintln(env.Stderr, "penstock:", err)
		return exitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if exited {
		return code
	}
	if err != nil {
		_, _ = fmt.Fprintln(env.Stderr, "penstock:", err)
		return exitUsage
	}
	if err := command.Run(env); err != nil {
		if !errors.Is(err, errReported) {
			_, _ = fmt.Fprintln(env.Stderr, "penstock:", err)
		}
		if _, ok := errors.AsType[usageError](err); ok {
			return exitUsage
		}
		return exitFailed
	}
	return exitDone
}

// usageError is the error of an invalid command line.
type usageError struct{ error }

// errReported is the error of a command that has printed its errors.
var errReported = errors.New("the errors have been printed")

type versionCommand struct{}

// Run prints the version, the commit and the Go version.
func (versionCommand) Run(env client.Environment) error {
	_, err := fmt.Fprintln(env.Stdout, versionText(env.Version))
	return err
}

func versionText(version string) string {
	commit := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	return fmt.Sprintf("penstock %s (commit %s, %s)", version, commit, runtime.Version())
}

type schemaCommand struct{}

// Run prints the JSON Schema of inventories, for editors.
func (schemaCommand) Run(env client.Environment) error {
	schema, err := document.Schema()
	if err == nil {
		_, err = env.Stdout.Write(schema)
	}
	return err
}
