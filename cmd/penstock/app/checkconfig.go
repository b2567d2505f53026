package app

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/config"
	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/decoders/catalog"
	"github.com/penstock/penstock/delivery/codec"
	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/inventory"
)

type checkConfigCommand struct {
	File string `arg:"" help:"The configuration file."`
}

// Run checks a configuration file together with the environment, and the
// inventory it names.
func (c checkConfigCommand) Run(w client.Environment) error {
	cfg, err := config.Load(c.File, w.Variables)
	if err != nil {
		return err
	}
	if cfg.Inventory != "" {
		data, err := os.ReadFile(cfg.Inventory)
		if err != nil {
			return fmt.Errorf("inventory: %w", err)
		}
		pool := codec.New(slog.New(slog.DiscardHandler))
		defer func() { _ = pool.Close() }()
		_, err = document.Parse(data, document.Options{
			CheckURL: guard.New(cfg.Egress.Allow).CheckURL, CheckSource: checkSource(pool), CheckFilter: inbound.CheckFilter,
			CheckEndpoint: inbound.CheckEndpoint, CheckRule: inventory.CheckRule, AllowHTTPCallback: cfg.Egress.AllowHTTPCallback,
		})
		if err != nil {
			return fmt.Errorf("inventory %s:\n%w", cfg.Inventory, err)
		}
	}
	_, err = fmt.Fprintln(w.Stdout, "ok")
	return err
}

// checkSource returns a function that refuses a decoder's source that does not compile.
func checkSource(pool *codec.Pool) func(codec, source string) error {
	return func(codec, source string) error {
		_, err := catalog.Catalog{JavaScript: pool.Compile}.Compile(codec, source, false)
		return err
	}
}
