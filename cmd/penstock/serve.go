package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"time"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/ingest/httpd"
)

// drainTime is how long work in flight may take to finish after SIGTERM.
const drainTime = 20 * time.Second

// silence is how long an idle connection may delay the end of the program.
const silence = time.Second

type serveCommand struct {
	Config string `help:"The configuration file; PENSTOCK_* variables override it." placeholder:"FILE"`
}

// Run serves until SIGTERM or SIGINT, then drains.
func (s serveCommand) Run(w world) error {
	setGCPercent(w.environ)
	cfg, err := config.Load(s.Config, w.environ)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(w.stderr, nil))
	d, err := open(w.ctx, cfg, log)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(w.ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("%w%s", err, d.abandon())
	}
	return d.serve(w.ctx, listener)
}

// setGCPercent sets GOGC to 200 unless the environment sets it. The live heap is small,
// a few megabytes and the current batches, while every frame leaves garbage: with
// 400 a frame costs an eighth less CPU than with Go's default of 100, but thousands of
// connections then take five times the memory that they hold.
func setGCPercent(environ []string) {
	for _, v := range environ {
		if strings.HasPrefix(v, "GOGC=") {
			return
		}
	}
	debug.SetGCPercent(200)
}

// limitOptions are the bounds that are configured.
func limitOptions(o config.Overload, log *slog.Logger) httpd.LimitOptions {
	return httpd.LimitOptions{
		Webhooks:     httpd.Bound{Requests: o.Webhooks.Requests, Bytes: int64(o.Webhooks.Bytes)},
		API:          httpd.Bound{Requests: o.API.Requests, Bytes: int64(o.API.Bytes)},
		AccountShare: o.AccountShare, Wait: o.Wait, Connections: o.Connections, Logger: log,
	}
}

// abandon closes the back ends after a failed start and adds errors of closing.
func (d *daemon) abandon() string {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := d.close(ctx); err != nil {
		return "; " + err.Error()
	}
	return ""
}

// serve answers requests until ctx is done, then drains and closes.
func (d *daemon) serve(ctx context.Context, listener net.Listener) error {
	if err := d.start(); err != nil {
		return fmt.Errorf("%w%s", err, d.abandon())
	}
	d.log.Info("penstock is ready", "listen", "http://"+listener.Addr().String(), "data_dir", d.cfg.DataDir)
	failed := make(chan error, 1)
	conns := httpd.Listen(listener, d.limits)
	go func() { failed <- d.app.Listener(conns) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		d.log.Info("draining")
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	defer time.AfterFunc(silence, conns.CloseIdle).Stop()
	if stopped := d.close(drain); err == nil {
		err = stopped
	}
	if err == nil {
		d.log.Info("stopped")
	}
	return err
}
