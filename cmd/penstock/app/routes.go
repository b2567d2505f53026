package app

import "github.com/penstock/penstock/ingest/httpd"

// Routes returns the HTTP application of the gateway; a test compares its routes with
// the contract.
func (d *Gateway) Routes() *httpd.App { return d.app }
