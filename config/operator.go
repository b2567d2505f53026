package config

import (
	"net/url"
	"time"

	"github.com/penstock/penstock/config/strict"
)

// Operator configures the SIM operator (docs/operator.md).
type Operator struct {
	Type string `json:"type" strict:"scalar"` // simulator or http
	// URL is the base to which /ready, /commands and /messages are appended.
	URL   string `json:"url"`
	Token string `json:"token"` // sent as Authorization: Bearer
	// Timeout bounds a request to the back end.
	Timeout time.Duration `json:"timeout"`
	// AtOnce is how many commands are under way at one time.
	AtOnce int `json:"at_once"`
	// ReportWithin is how long the operator may take to come to the end of a
	// command; then its job fails.
	ReportWithin time.Duration `json:"report_within"`
}

// derive fills in defaults.
func (o *Operator) derive() {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	if o.AtOnce == 0 {
		o.AtOnce = 16
	}
	if o.ReportWithin == 0 {
		o.ReportWithin = 24 * time.Hour
	}
}

func (o *Operator) validate(m *strict.Mistakes) {
	oneOf(m, "operator.type", o.Type, Simulator, HTTP)
	if o.Type == Simulator && (o.URL != "" || o.Token != "") {
		m.Add("operator.type", "expected http, because settings of it are there, got %q", o.Type)
	}
	u, err := url.Parse(o.URL)
	if o.Type == HTTP && (err != nil || !web(u) || u.RawQuery != "") {
		m.Add("operator.url", "expected an http or https URL without a query") // which may hold a secret
	}
	asciiField(m, "operator.token", o.Token, 4096)
	if o.Timeout < 100*time.Millisecond || o.Timeout > 8*time.Second {
		m.Add("operator.timeout", "expected 100ms to 8s, got %q", o.Timeout)
	}
	if o.AtOnce < 1 || o.AtOnce > 64 {
		m.Add("operator.at_once", "expected 1 to 64, got %d", o.AtOnce)
	}
	if o.ReportWithin < time.Minute || o.ReportWithin > 30*24*time.Hour {
		m.Add("operator.report_within", "expected 1m to 720h, got %q", o.ReportWithin)
	}
}
