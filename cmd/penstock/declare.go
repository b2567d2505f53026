package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay"
)

// declare applies the configured inventory, or the demo where there is nothing
// else. While the database is down it is tried again in the background: senders that
// are known already are served meanwhile.
func (d *daemon) declare(ctx context.Context) error {
	if d.cfg.Inventory == "" {
		return d.declareDemo(ctx)
	}
	data, err := os.ReadFile(d.cfg.Inventory)
	if err != nil {
		return fmt.Errorf("inventory: %w", err)
	}
	err = d.apply(ctx, data)
	if relay.KindOf(err) != relay.KindUnavailable {
		return err
	}
	d.log.Error("the inventory waits for the database", "error", err)
	d.running.Go(func() { d.applyLater(d.life, data) })
	return nil
}

func (d *daemon) apply(ctx context.Context, data []byte) error {
	done, err := d.inventory.Apply(ctx, data, admin.Mode{})
	if err != nil {
		return fmt.Errorf("inventory %s:\n%w", d.cfg.Inventory, err)
	}
	d.log.Info("inventory applied", "path", d.cfg.Inventory, "accounts", len(done.Accounts))
	return nil
}

func (d *daemon) applyLater(ctx context.Context, data []byte) {
	for pause(ctx, 2*time.Second) {
		err := d.apply(ctx, data)
		if err == nil {
			return
		}
		if relay.KindOf(err) != relay.KindUnavailable {
			d.log.Error("the inventory was refused", "error", err)
			return
		}
	}
}

// declareDemo fills an empty SQLite database of a daemon that only this machine
// can reach.
func (d *daemon) declareDemo(ctx context.Context) error {
	if d.cfg.Database.URL != "" || !loopback(d.cfg.Listen) {
		return nil
	}
	tokenPath := filepath.Join(d.cfg.DataDir, demoTokenFile)
	empty, err := d.inventory.Empty(ctx)
	if err != nil {
		return err
	}
	if !empty {
		if _, err := os.Stat(tokenPath); err == nil {
			d.log.Info("the demo account's token is kept in a file", "path", tokenPath)
		}
		return nil
	}
	token, _, err := kept(d.cfg.DataDir, demoTokenFile, 26)
	if err != nil {
		return err
	}
	data, err := inventory.Encode(inventory.Demo(inventory.DemoOptions{Token: token}))
	if err != nil {
		return err
	}
	if _, err := d.inventory.Apply(ctx, data, admin.Mode{Trusted: true}); err != nil {
		return fmt.Errorf("demo inventory: %w", err)
	}
	d.log.Info("no inventory is configured: a demo account was made, its token is kept in a file", "path", tokenPath)
	return nil
}

func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
