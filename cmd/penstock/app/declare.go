package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/penstock/penstock/cmd/penstock/client"
	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inventory"
)

// declare applies the configured inventory, or the demo if there is none. While the
// database is down it is retried in the background: known senders are served
// meanwhile.
func (d *Gateway) declare(ctx context.Context, known *account.Store, inv *inventory.Service) error {
	if err := d.keepDemo(ctx, inv); err != nil {
		return fmt.Errorf("demo account: %w", err)
	}
	if err := d.declareConfigured(ctx, inv); err != nil {
		return err
	}
	accounts, err := known.Accounts(ctx)
	if relay.KindOf(err) == relay.KindUnavailable {
		return nil // the back end's check reports that
	}
	if err == nil && len(accounts) == 0 {
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
	d.undeclared.Store(true)
	d.running.Go(func() { d.applyLater(d.life, inv, data) })
	return nil
}

func (d *Gateway) apply(ctx context.Context, inv *inventory.Service, data []byte) error {
	done, err := inv.Apply(ctx, data, document.Mode{})
	if err != nil {
		return fmt.Errorf("inventory %s:\n%w", d.cfg.Inventory, err)
	}
	d.log.Info("inventory applied", "path", d.cfg.Inventory, "accounts", len(done.Accounts))
	if len(done.Kept) > 0 {
		d.log.Info("inventory not taken everywhere", "path", d.cfg.Inventory, "count", len(done.Kept), "kept", document.FirstNames(done.Kept))
	}
	return nil
}

func (d *Gateway) applyLater(ctx context.Context, inv *inventory.Service, data []byte) {
	for relay.Sleep(ctx, 2*time.Second) {
		err := d.apply(ctx, inv, data)
		if err == nil {
			d.undeclared.Store(false)
			return
		}
		if relay.KindOf(err) != relay.KindUnavailable {
			d.log.Error("inventory refused", "error", err)
			d.undeclared.Store(false) // its senders stay unknown until it is corrected
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
		return nil
	}
	token, err := keptToken(d.cfg.DataDir, client.DemoTokenFile)
	if err != nil {
		return err
	}
	if err := applyDemo(ctx, inv, demoOf(token)); err != nil {
		return fmt.Errorf("demo inventory: %w", err)
	}
	d.log.Info("no inventory is configured: created a demo account and saved its token to a file", "path", tokenPath)
	return nil
}

// demoOf returns the demo inventory. The SOAP password is the token, whose hash need not be
// slow: it would be half of the start and 19 MiB of its memory.
func demoOf(token string) document.Document {
	demo := document.Demo(token)
	demo.Accounts[0].SOAP.Password = account.HashGenerated(account.HashToken(token))
	return demo
}

func applyDemo(ctx context.Context, inv *inventory.Service, demo document.Document) error {
	data, err := json.Marshal(demo)
	if err != nil {
		return err
	}
	_, err = inv.Apply(ctx, data, document.Mode{Trusted: true})
	return err
}

// keepDemo makes the content of the file demo-token the token and the SOAP password of the
// demo account of an earlier start; a missing or empty file gets a new token. On a public
// address it revokes both for good, because the token has all scopes and is in scripts and
// shell histories. A token that was revoked stays revoked.
func (d *Gateway) keepDemo(ctx context.Context, inv *inventory.Service) error {
	if d.cfg.Database.URL != "" {
		return nil // there is no demo
	}
	path := filepath.Join(d.cfg.DataDir, client.DemoTokenFile)
	login, found, err := inv.GeneratedLogin(ctx)
	if relay.KindOf(err) == relay.KindUnavailable && loopback(d.cfg.Listen) {
		d.log.Error("cannot read the inventory", "error", err)
		return nil
	}
	if err != nil || !found {
		return err
	}
	if !loopback(d.cfg.Listen) {
		if err := inv.Revoke(ctx, login.TokenHash); err != nil {
			return fmt.Errorf("it must not be served on a public address: %w", err)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		d.log.Warn("the demo account's token and SOAP password were revoked, because the gateway listens on a public address; declare accounts of your own", "listen", d.cfg.Listen)
		return nil
	}
	token, err := keptToken(d.cfg.DataDir, client.DemoTokenFile)
	if err != nil {
		return err
	}
	if account.HashToken(token) == login.TokenHash {
		d.log.Info("the demo account's token is kept in a file", "path", path)
		return nil
	}
	demo := demoOf(token).Accounts[0]
	replacement := document.Document{Name: login.Document, Accounts: []document.Account{{Name: login.Account, Tokens: demo.Tokens, SOAP: demo.SOAP}}}
	replacement.Accounts[0].SOAP.Username = login.Username
	if err := applyDemo(ctx, inv, replacement); err != nil {
		return err
	}
	if err := inv.Revoke(ctx, login.TokenHash); err != nil {
		return err
	}
	d.log.Warn("the demo account has another token: that of the file", "path", path)
	return nil
}

func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
