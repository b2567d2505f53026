package client

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/penstock/penstock/config"
)

// Healthcheck checks whether a gateway is alive, for containers.
type Healthcheck struct {
	Server string `aliases:"url" help:"The gateway's URL; default: PENSTOCK_SERVER, else the listen address of the configuration." placeholder:"URL"`
	JSON   bool   `name:"json" help:"Has no effect: the output is always JSON."`
}

// Run requests /healthz; it fails unless the gateway is alive.
func (h Healthcheck) Run(env Environment) error {
	client := http.DefaultClient
	if h.Server = serverURL(env, h.Server, "-"); h.Server == "http://-" {
		c, err := config.Load("", env.Variables)
		if err != nil {
			return err
		}
		h.Server = "http://" + c.Listen
		if c.TLS.CertFile != "" {
			// The certificate has the public name, while the request is to the listen address.
			h.Server = "https://" + c.Listen
			client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // this machine; the answer is not secret
		}
	}
	ctx, cancel := context.WithTimeout(env.Context, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.Server+"/healthz", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return unreachable(h.Server, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("healthz: %s: %s", resp.Status, body)
	}
	_, err = fmt.Fprintf(env.Stdout, "%s\n", body)
	return err
}
