package main

import (
	"fmt"
	"os"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/decoders/catalog"
	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/relay/inbound"
)

type checkConfigCommand struct {
	File string `arg:"" help:"The configuration file."`
}

// Run checks a configuration file together with the environment, and the
// inventory it names.
func (c checkConfigCommand) Run(w world) error {
	cfg, err := config.Load(c.File, w.environ)
	if err != nil {
		return err
	}
	if cfg.Inventory != "" {
		data, err := os.ReadFile(cfg.Inventory)
		if err != nil {
			return fmt.Errorf("inventory: %w", err)
		}
		_, err = inventory.Parse(data, inventory.Options{
			CheckURL: guard.New(cfg.Egress.Allow).CheckURL, CheckSource: checkSource, CheckFilter: inbound.CheckFilter,
			AllowHTTPCallback: cfg.Egress.AllowHTTPCallback,
		})
		if err != nil {
			return fmt.Errorf("inventory %s:\n%w", cfg.Inventory, err)
		}
	}
	_, err = fmt.Fprintln(w.stdout, "ok")
	return err
}

// checkSource refuses a decoder's source that does not compile.
func checkSource(codec, source string) error {
	_, err := catalog.Compile(codec, source, false)
	return err
}
