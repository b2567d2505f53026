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
)

// drainTime is how long work in flight may take to finish after SIGTERM.
const drainTime = 20 * time.Second

type serveCommand struct {
	Config string `help:"The configuration file; PENSTOCK_* variables win over it." placeholder:"FILE"`
}

// Run serves until SIGTERM or SIGINT, then drains.
func (s serveCommand) Run(w world) error {
	collectLess(w.environ)
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

// collectLess lets the heap grow to five times what is live before it is
// collected, unless GOGC says otherwise. What is live is small, a few megabytes
// and the batches in the works, while every frame leaves garbage: at Go's own
// setting a frame cost 25 µs of CPU, at this one 22. Under full load the process
// then holds some 300 MB instead of 150; GOMEMLIMIT bounds it where that is too
// much.
func collectLess(environ []string) {
	for _, v := range environ {
		if strings.HasPrefix(v, "GOGC=") {
			return
		}
	}
	debug.SetGCPercent(400)
}

// abandon closes what was opened and says what went wrong on top, if anything.
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
	conns := newSilents(listener)
	go func() { failed <- d.app.Listener(conns) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		d.log.Info("draining")
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	defer time.AfterFunc(silence, conns.hush).Stop()
	if stopped := d.close(drain); err == nil {
		err = stopped
	}
	if err == nil {
		d.log.Info("stopped")
	}
	return err
}
