package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock/penstock/cmd/penstock/client"
	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inventory"
	"github.com/penstock/penstock/relay/sqlstore/accounts"
)

// declare applies the configured inventory, or the demo if there is none. While the
// database is down it is retried in the background: known senders are served
// meanwhile.
func (d *Gateway) declare(ctx context.Context, known *accounts.Store, inv *inventory.Service) error {
	if err := d.revokeDemo(ctx, inv); err != nil {
		return fmt.Errorf("the data directory holds a demo account, which must not be served on a public address: %w", err)
	}
	if err := d.declareConfigured(ctx, inv); err != nil {
		return err
	}
	all, err := known.Accounts(ctx)
	if relay.KindOf(err) == relay.KindUnavailable {
		return nil // the back end's check says so
	}
	if err == nil && len(all) == 0 {
		d.log.Warn("no account is declared; declare one with: penstock apply -f inventory.yaml", "documentation", "docs/inventory.md", "example", "deploy/inventory.example.yaml")
	}
	return err
}

// declareConfigured applies the configured inventory, or the demo.
func (d *Gateway) declareConfigured(ctx context.Context, inv *inventory.Service) error {
	if d.cfg.Inventory == "" {
		return d.declareDemo(ctx, inv)
	}
	data, err := os.ReadFile(d.cfg.Inventory)
	if err != nil {
		return fmt.Errorf("inventory: %w", err)
	}
	err = d.apply(ctx, inv, data)
	if relay.KindOf(err) != relay.KindUnavailable {
		return err
	}
	d.log.Error("inventory not applied yet: database unavailable", "error", err)
	d.running.Go(func() { d.applyLater(d.life, inv, data) })
	return nil
}

func (d *Gateway) apply(ctx context.Context, inv *inventory.Service, data []byte) error {
	done, err := inv.Apply(ctx, data, document.Mode{})
	if err != nil {
		return fmt.Errorf("inventory %s:\n%w", d.cfg.Inventory, err)
	}
	d.log.Info("inventory applied", "path", d.cfg.Inventory, "accounts", len(done.Accounts))
	return nil
}

func (d *Gateway) applyLater(ctx context.Context, inv *inventory.Service, data []byte) {
	for pause(ctx, 2*time.Second) {
		err := d.apply(ctx, inv, data)
		if err == nil {
			return
		}
		if relay.KindOf(err) != relay.KindUnavailable {
			d.log.Error("inventory refused", "error", err)
			return
		}
	}
}

// declareDemo fills an empty SQLite database of a gateway that listens on a loopback
// address.
func (d *Gateway) declareDemo(ctx context.Context, inv *inventory.Service) error {
	if d.cfg.Database.URL != "" || !loopback(d.cfg.Listen) {
		return nil
	}
	tokenPath := filepath.Join(d.cfg.DataDir, client.DemoTokenFile)
	empty, err := inv.Empty(ctx)
	if relay.KindOf(err) == relay.KindUnavailable {
		d.log.Error("cannot read the inventory", "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	if !empty {
		if _, err := os.Stat(tokenPath); err == nil {
			d.log.Info("saved the demo account's token to a file", "path", tokenPath)
		}
		return nil
	}
	token, _, err := kept(d.cfg.DataDir, client.DemoTokenFile, 26)
	if err != nil {
		return err
	}
	demo := document.Demo(document.DemoOptions{Token: token})
	// The password is the token, whose hash need not be slow: it would be half of the
	// start and 19 MiB of its memory.
	demo.Accounts[0].SOAP.Password = account.HashGenerated(account.HashToken(token))
	data, err := document.Encode(demo)
	if err != nil {
		return err
	}
	if _, err := inv.Apply(ctx, data, document.Mode{Trusted: true}); err != nil {
		return fmt.Errorf("demo inventory: %w", err)
	}
	d.log.Info("no inventory is configured: created a demo account and saved its token to a file", "path", tokenPath)
	return nil
}

// revokeDemo revokes the demo account's token and SOAP password if the gateway
// listens on a public address: the token has all scopes and is in scripts and shell
// histories.
func (d *Gateway) revokeDemo(ctx context.Context, inv *inventory.Service) error {
	path := filepath.Join(d.cfg.DataDir, client.DemoTokenFile)
	b, err := os.ReadFile(path)
	if loopback(d.cfg.Listen) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	hash := account.HashToken(strings.TrimSpace(string(b)))
	if err := inv.Revoke(ctx, hash); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	d.log.Warn("the demo account's token and SOAP password were revoked, because the gateway listens on a public address; declare accounts of your own", "listen", d.cfg.Listen)
	return nil
}

func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
