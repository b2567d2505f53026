package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/penstock/penstock/cmd/penstock/app/logs"
	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/cache"
)

// drainTime is the longest time for which the gateway waits for work in progress after SIGTERM.
const drainTime = 20 * time.Second

// idleGrace is the time after which idle connections are closed at the end of the program.
const idleGrace = time.Second

// lastRequestTime is the time in which clients with open connections can send one more request.
// Its response makes them close the connection.
const lastRequestTime = 500 * time.Millisecond

type serveCommand struct {
	Config string `help:"The configuration file; PENSTOCK_* variables override it." placeholder:"FILE"`
}

// Run serves until SIGTERM or SIGINT, then drains.
func (s serveCommand) Run(env client.Environment) error {
	setGCPercent(env.Variables)
	cfg, err := config.Load(s.Config, env.Variables)
	if err != nil {
		return err
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // SIGHUP no longer ends the program
	defer signal.Stop(hangups)
	handler, level := NewLog(env.Stderr, cfg.Log)
	defer handler.Close()
	log := slog.New(handler)
	slog.SetDefault(log) // for packages without a logger
	cache.SetLogger(log)
	for _, warning := range config.UnknownVariables(env.Variables) {
		log.Warn("an environment variable is not a setting", "variable", warning)
	}
	// If the address is in use, the start fails before it creates files.
	probe, err := listen(env.Context, cfg.Listen)
	if err != nil {
		return err
	}
	_ = probe.Close()
	g, err := Open(env.Context, cfg, log, env.Version)
	if err != nil {
		return err
	}
	reload := reloader{
		load: func() (config.Config, error) { return config.Load(s.Config, env.Variables) }, level: level, certificate: g.certificate, log: g.log,
	}
	g.running.Go(func() { reload.run(g.background, hangups) })
	listener, err := listen(env.Context, cfg.Listen)
	if err != nil {
		return fmt.Errorf("%w%s", err, g.Abandon())
	}
	return g.Serve(env.Context, listener)
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("another program listens on %s: stop it, or choose another address: %w", addr, err)
	}
	return listener, settingError("listen (PENSTOCK_LISTEN)", err)
}

// NewLog returns the handler of the log and its level.
func NewLog(w io.Writer, c config.Log) (*logs.Handler, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(c.Level)
	return logs.New(w, logs.Options{Level: level, JSON: c.Format == config.LogJSON, Context: func(ctx context.Context) []slog.Attr {
		if id := httpd.RequestID(ctx); id != "" {
			return []slog.Attr{slog.String("request_id", id)}
		}
		return nil
	}}), level
}

// setGCPercent sets GOGC to 200 unless the environment sets it. The live heap is small, and each
// frame creates garbage. With GOGC=400 a frame takes an eighth less CPU time than with the
// default of 100, but thousands of connections then take five times their live memory.
func setGCPercent(environ []string) {
	for _, v := range environ {
		if strings.HasPrefix(v, "GOGC=") {
			return
		}
	}
	debug.SetGCPercent(200)
}

// Abandon closes the gateway after a failed start. It returns "; " and the errors, or "".
func (g *Gateway) Abandon() string {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := g.close(ctx); err != nil {
		return "; " + err.Error()
	}
	return ""
}

// logReady logs each second which required back ends are down, until none is.
func (g *Gateway) logReady(ctx context.Context) {
	required := slices.DeleteFunc(slices.Clone(g.checks), func(b admin.Backend) bool { return b.Optional })
	for ctx.Err() == nil {
		down := admin.CheckBackends(ctx, required)
		if len(down) == 0 {
			g.log.Info("penstock is ready")
			return
		}
		for _, name := range slices.Sorted(maps.Keys(down)) {
			if ctx.Err() == nil {
				g.log.Warn("penstock is not ready: a back end is down", "name", name, "error", down[name])
			}
		}
		relay.Sleep(ctx, time.Second)
	}
}

// Serve answers requests until ctx is done, then drains and closes.
func (g *Gateway) Serve(ctx context.Context, listener net.Listener) error {
	if err := g.start(); err != nil {
		return fmt.Errorf("%w%s", err, g.Abandon())
	}
	if err := g.serveProfiles(g.background); err != nil {
		return fmt.Errorf("%w%s", err, g.Abandon())
	}
	var tlsConfig *tls.Config
	url := "http://" + listener.Addr().String()
	if g.certificate != nil {
		tlsConfig = g.certificate.Config()
		url = "https://" + listener.Addr().String()
	}
	g.log.Info("penstock is listening", "listen", url, "data_dir", g.cfg.DataDir)
	g.running.Go(func() { g.logReady(g.background) })
	failed := make(chan error, 1)
	conns := httpd.Listen(listener, tlsConfig, g.limits)
	go func() { failed <- g.app.Listener(conns) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		g.log.Info("draining")
		graceCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRequestTime)
		conns.Drain(graceCtx)
		cancel()
	}
	drainCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	defer time.AfterFunc(idleGrace, conns.CloseIdle).Stop()
	if closeErr := g.close(drainCtx); err == nil {
		err = closeErr
	}
	if err == nil {
		g.log.Info("stopped")
	}
	return err
}

// serveProfiles serves Go's profiles at /debug/pprof/ until ctx ends, if debug.listen is set.
func (g *Gateway) serveProfiles(ctx context.Context) error {
	if g.cfg.Debug.Listen == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", g.cfg.Debug.Listen)
	if err != nil {
		return fmt.Errorf("debug.listen (PENSTOCK_DEBUG_LISTEN): %w", err)
	}
	routes := http.NewServeMux()
	routes.HandleFunc("/debug/pprof/", pprof.Index)
	routes.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	routes.HandleFunc("/debug/pprof/profile", pprof.Profile)
	routes.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	routes.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	g.running.Go(func() {
		<-ctx.Done()
		_ = server.Close()
	})
	g.running.Go(func() { _ = server.Serve(listener) }) // ends when the server is closed
	g.log.Info("profiles are served", "url", "http://"+listener.Addr().String()+"/debug/pprof/")
	return nil
}

// reloader reloads the settings that may change while the gateway runs: the log level and the
// certificate.
type reloader struct {
	load        func() (config.Config, error)
	level       *slog.LevelVar
	certificate *httpd.Certificate // nil without TLS
	log         *slog.Logger
}

func (r reloader) run(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			r.reload()
		}
	}
}

// reload applies valid settings. Invalid settings keep their current value.
func (r reloader) reload() {
	cfg, err := r.load()
	if err != nil {
		r.log.Error("configuration not reloaded, because it is invalid", "error", err)
	} else {
		r.level.Set(cfg.Log.Level)
		r.log.Info("log level reloaded; other settings need a restart", "log_level", cfg.Log.Level.String())
	}
	if r.certificate == nil {
		return
	}
	if err := r.certificate.Reload(); err != nil {
		r.log.Error("certificate not reloaded; the current one is still used", "expires", r.certificate.Expires(), "error", err)
		return
	}
	r.log.Info("certificate reloaded", "expires", r.certificate.Expires())
}

// openCertificate reads the certificate; nil if none is configured.
func openCertificate(c config.TLS) (*httpd.Certificate, error) {
	if c.CertFile == "" {
		return nil, nil
	}
	return httpd.LoadCertificate(c.CertFile, c.KeyFile)
}
