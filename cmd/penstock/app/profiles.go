package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// serveProfiles serves Go's profiles at /debug/pprof/ on a listener of their own, if one
// is configured, until ctx ends.
func (d *Gateway) serveProfiles(ctx context.Context) error {
	if d.cfg.Debug.Listen == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", d.cfg.Debug.Listen)
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
	d.running.Go(func() {
		<-ctx.Done()
		_ = server.Close()
	})
	d.running.Go(func() { _ = server.Serve(listener) }) // ends when it is closed
	d.log.Info("profiles are served", "url", "http://"+listener.Addr().String()+"/debug/pprof/")
	return nil
}
