package app

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/config"
	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/decoders/catalog"
	"github.com/penstock/penstock/delivery/codec"
	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/relay/cache"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/inventory"
	"github.com/penstock/penstock/relay/ledger/vault"
)

type checkConfigCommand struct {
	File string `arg:"" help:"The configuration file, or an inventory."`
}

// Run checks a configuration file with the environment, the files that it names, and its inventory,
// and warns of unknown variables. If the file is an inventory, Run checks only the inventory, without
// the records of a gateway.
func (c checkConfigCommand) Run(env client.Environment) error {
	if data, err := os.ReadFile(c.File); err == nil && document.Recognises(data) {
		cfg, err := config.Load("", env.Variables)
		if err != nil {
			return err
		}
		inventory, err := checkInventory(cfg, c.File, data)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(env.Stdout, "ok: an inventory, document %s, accounts: %d\n", inventory.Owner(), len(inventory.Accounts))
		return err
	}
	cfg, err := config.Load(c.File, env.Variables)
	if err != nil {
		return err
	}
	for _, warning := range config.UnknownVariables(env.Variables) {
		if _, err := fmt.Fprintln(env.Stderr, "penstock: warning:", warning); err != nil {
			return err
		}
	}
	if err := checkSettings(cfg); err != nil {
		return fmt.Errorf("config %s:\n%w", c.File, err)
	}
	if cfg.Inventory != "" {
		data, err := os.ReadFile(cfg.Inventory)
		if err != nil {
			return fmt.Errorf("inventory: %w", err)
		}
		if _, err := checkInventory(cfg, cfg.Inventory, data); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(env.Stdout, "ok")
	return err
}

// checkInventory checks an inventory as a new gateway with these settings does.
func checkInventory(cfg config.Config, path string, data []byte) (*document.Document, error) {
	pool := codec.New(slog.New(slog.DiscardHandler))
	defer func() { _ = pool.Close() }()
	parsed, err := inventory.Parse(data, document.Options{
		CheckURL: guard.New(cfg.Egress.Allow).CheckURL, CheckSource: checkSource(pool), AllowHTTPCallback: cfg.Egress.AllowHTTPCallback,
	})
	if err != nil {
		return nil, fmt.Errorf("inventory %s:\n%w", path, err)
	}
	return parsed, nil
}

// checkSettings returns an error for each setting that config.Load accepts, but with which a
// gateway does not start: missing and damaged files, and values that the client of a back end
// refuses. It opens no connections and changes nothing. It skips a ledger key that does not exist
// yet, and files of the data directory that it cannot read, because the gateway may run as another user.
func checkSettings(cfg config.Config) error {
	var errs []error
	check := func(setting string, err error) { errs = append(errs, settingError(setting, err)) }
	if info, err := os.Stat(cfg.DataDir); err == nil && !info.IsDir() {
		check("data_dir (PENSTOCK_DATA_DIR)", fmt.Errorf("%s is not a directory", cfg.DataDir))
	} else if cfg.AdminToken == "" {
		if _, err := readToken(cfg.DataDir, client.AdminTokenFile); !errors.Is(err, fs.ErrPermission) {
			check("admin_token (PENSTOCK_ADMIN_TOKEN)", err)
		}
	}
	_, err := openCertificate(cfg.TLS)
	check("tls.cert_file (PENSTOCK_TLS_CERT_FILE), tls.key_file (PENSTOCK_TLS_KEY_FILE)", err)
	check("database.url (PENSTOCK_DATABASE_URL)", db.CheckURL(cfg.Database.URL))
	_, err = cache.ParseURL(cfg.Redis.URL)
	check("redis.url (PENSTOCK_REDIS_URL)", err)
	if cfg.Influx.URL != "" {
		_, err := newInflux(cfg.Influx, nil)
		check("influx", err)
	}
	if cfg.SMTP.Addr != "" {
		_, err := newMailClient(cfg.SMTP)
		check("smtp", err)
	}
	keys, err := masterKeys(cfg)
	if missingOrUnreadable := errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission); cfg.Ledger.MasterKeyFile != "" || !missingOrUnreadable {
		if err == nil {
			_, err = vault.New(nil, keys)
		}
		check("ledger", err)
	}
	return errors.Join(errs...)
}

// checkSource returns a function that returns an error for a source that does not compile.
func checkSource(pool *codec.Pool) func(codec, source string) error {
	return func(codec, source string) error {
		_, err := catalog.Catalog{JavaScript: pool.Compile}.Compile(codec, source, false)
		return err
	}
}
