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

// declare applies the configured inventory, or the demo if no inventory is configured. While the
// database is down it retries in the background, because known senders can be served.
func (g *Gateway) declare(ctx context.Context, accountStore *account.Store, inv *inventory.Service) error {
	if err := g.updateDemo(ctx, inv); err != nil {
		return fmt.Errorf("demo account: %w", err)
	}
	if err := g.declareConfigured(ctx, inv); err != nil {
		return err
	}
	accounts, err := accountStore.Accounts(ctx)
	if relay.KindOf(err) == relay.KindUnavailable {
		return nil // /readyz reports the error
	}
	if err == nil && len(accounts) == 0 {
		g.log.Warn("no account is declared; declare one with: penstock apply -f inventory.yaml", "documentation", "docs/inventory.md", "example", "deploy/inventory.example.yaml")
	}
	return err
}

// declareConfigured applies the configured inventory, or declares the demo if none is configured.
func (g *Gateway) declareConfigured(ctx context.Context, inv *inventory.Service) error {
	if g.cfg.Inventory == "" {
		return g.declareDemo(ctx, inv)
	}
	data, err := os.ReadFile(g.cfg.Inventory)
	if err != nil {
		return fmt.Errorf("inventory: %w", err)
	}
	err = g.apply(ctx, inv, data)
	if relay.KindOf(err) != relay.KindUnavailable {
		return err
	}
	g.log.Error("inventory not applied yet: database unavailable", "error", err)
	g.undeclared.Store(true)
	g.running.Go(func() { g.applyLater(g.background, inv, data) })
	return nil
}

func (g *Gateway) apply(ctx context.Context, inv *inventory.Service, data []byte) error {
	result, err := inv.Apply(ctx, data, document.Mode{})
	if err != nil {
		return fmt.Errorf("inventory %s:\n%w", g.cfg.Inventory, err)
	}
	g.log.Info("inventory applied", "path", g.cfg.Inventory, "accounts", len(result.Accounts))
	if len(result.Kept) > 0 {
		g.log.Info("inventory applied; some values are kept", "path", g.cfg.Inventory, "count", len(result.Kept), "kept", document.FirstNames(result.Kept))
	}
	return nil
}

func (g *Gateway) applyLater(ctx context.Context, inv *inventory.Service, data []byte) {
	for relay.Sleep(ctx, 2*time.Second) {
		err := g.apply(ctx, inv, data)
		if err == nil {
			g.undeclared.Store(false)
			return
		}
		if relay.KindOf(err) != relay.KindUnavailable {
			g.log.Error("inventory refused", "error", err)
			g.undeclared.Store(false) // no retry follows: the tokens of the inventory stay unknown
			return
		}
	}
}

// declareDemo fills an empty SQLite database of a gateway that listens on a loopback
// address.
func (g *Gateway) declareDemo(ctx context.Context, inv *inventory.Service) error {
	if g.cfg.Database.URL != "" || !isLoopback(g.cfg.Listen) {
		return nil
	}
	tokenPath := filepath.Join(g.cfg.DataDir, client.DemoTokenFile)
	empty, err := inv.Empty(ctx)
	if relay.KindOf(err) == relay.KindUnavailable {
		g.log.Error("cannot read the inventory", "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	if !empty {
		return nil
	}
	token, err := readOrCreateToken(g.cfg.DataDir, client.DemoTokenFile)
	if err != nil {
		return err
	}
	if err := applyDemo(ctx, inv, newDemo(token)); err != nil {
		return fmt.Errorf("demo inventory: %w", err)
	}
	g.log.Info("no inventory is configured: created a demo account and saved its token to a file", "path", tokenPath)
	return nil
}

// newDemo returns the demo inventory. The SOAP password is the token, which cannot be guessed. A fast
// hash is therefore sufficient: a slow hash would take 19 MiB and half of the time to start.
func newDemo(token string) document.Document {
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

// updateDemo sets the token and the SOAP password of an existing demo account to the content of
// the file demo-token; a missing or empty file gets a new token. On a public address it revokes
// both, because the token has all scopes and is in scripts and shell histories. A revoked token
// stays revoked.
func (g *Gateway) updateDemo(ctx context.Context, inv *inventory.Service) error {
	if g.cfg.Database.URL != "" {
		return nil // PostgreSQL never contains the demo account
	}
	path := filepath.Join(g.cfg.DataDir, client.DemoTokenFile)
	login, found, err := inv.GeneratedLogin(ctx)
	if relay.KindOf(err) == relay.KindUnavailable && isLoopback(g.cfg.Listen) {
		g.log.Error("cannot read the inventory", "error", err)
		return nil
	}
	if err != nil || !found {
		return err
	}
	if !isLoopback(g.cfg.Listen) {
		if err := inv.Revoke(ctx, login.TokenHash); err != nil {
			return fmt.Errorf("the token must not be valid on a public address: %w", err)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		g.log.Warn("the demo account's token and SOAP password were revoked, because the gateway listens on a public address; declare accounts of your own", "listen", g.cfg.Listen)
		return nil
	}
	token, err := readOrCreateToken(g.cfg.DataDir, client.DemoTokenFile)
	if err != nil {
		return err
	}
	if account.HashToken(token) == login.TokenHash {
		g.log.Info("the demo account's token is in a file", "path", path)
		return nil
	}
	demo := newDemo(token).Accounts[0]
	replacement := document.Document{Name: login.Document, Accounts: []document.Account{{Name: login.Account, Tokens: demo.Tokens, SOAP: demo.SOAP}}}
	replacement.Accounts[0].SOAP.Username = login.Username
	if err := applyDemo(ctx, inv, replacement); err != nil {
		return err
	}
	if err := inv.Revoke(ctx, login.TokenHash); err != nil {
		return err
	}
	g.log.Warn("the demo account has a new token, which is in a file", "path", path)
	return nil
}

func isLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
