package app

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/ingest/httpd"
)

// hangups returns a channel that receives SIGHUP, which then ends no program, and what
// gives it back.
func hangups() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// reloader applies what may change while the gateway runs: the level of the log, and
// the certificate.
type reloader struct {
	load        func() (config.Config, error)
	level       *slog.LevelVar
	certificate *httpd.Certificate // nil without TLS
	log         *slog.Logger
}

// run reloads at every signal until ctx ends.
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

// reload applies what is right, and keeps what is wrong as it was.
func (r reloader) reload() {
	cfg, err := r.load()
	if err != nil {
		r.log.Error("configuration not reloaded: it has mistakes; the present one stays", "error", err)
	} else {
		r.level.Set(cfg.Log.Level)
		r.log.Info("configuration reloaded: the log level; other settings need a restart", "log_level", cfg.Log.Level.String())
	}
	if r.certificate == nil {
		return
	}
	if err := r.certificate.Reload(); err != nil {
		r.log.Error("certificate not reloaded; the present one stays", "expires", r.certificate.Expires(), "error", err)
		return
	}
	r.log.Info("certificate reloaded", "expires", r.certificate.Expires())
}

// openCertificate reads the certificate, if one is configured.
func openCertificate(c config.TLS) (*httpd.Certificate, error) {
	if c.CertFile == "" {
		return nil, nil
	}
	return httpd.LoadCertificate(c.CertFile, c.KeyFile)
}
