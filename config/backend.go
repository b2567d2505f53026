package config

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	"github.com/penstock/penstock/config/strict"
)

// HTTP is the type of back end with an HTTP interface.
const HTTP = "http"

// Lookup configures the service that returns the network of a number.
type Lookup struct {
	Type string `json:"type" strict:"scalar"` // simulator or http
	// URL is the target of a GET request, in which the number replaces %number.
	URL   string `json:"url" secret:"url"`
	Token string `json:"token" secret:"yes"` // sent as Authorization: Bearer
	// Timeout bounds a request to the back end.
	Timeout time.Duration `json:"timeout"`
	// Cache is the time for which an answer is cached; 0 disables the cache.
	Cache time.Duration `json:"cache"`
}

func (l *Lookup) derive() { l.Timeout = cmp.Or(l.Timeout, 10*time.Second) }

func (l *Lookup) validate(m *strict.Mistakes) {
	oneOf(m, "lookup.type", l.Type, Simulator, HTTP)
	m.AddIf(l.Type == Simulator && (l.URL != "" || l.Token != ""), "lookup.type", "expected http, because url or token is set, got %q", l.Type)
	u, err := url.Parse(strings.ReplaceAll(l.URL, "%number", "0"))
	if l.Type == HTTP && (err != nil || !isWebURL(u)) {
		m.Add("lookup.url", "expected an http or https URL") // not quoted, because it may contain a secret
	} else if l.Type == HTTP && strings.ContainsAny(l.URL, "?#") && !strings.Contains(l.URL, "%number") {
		m.Add("lookup.url", "expected %%number in a URL with a query")
	}
	asciiField(m, "lookup.token", l.Token, 4096)
	m.AddIf(l.Timeout < 100*time.Millisecond || l.Timeout > time.Minute, "lookup.timeout", "expected 100ms to 1m, got %q", l.Timeout)
	m.AddIf(l.Cache < 0 || l.Cache > 30*24*time.Hour, "lookup.cache", "expected 0s to 720h, got %q", l.Cache)
}

// Operator configures the SIM operator (docs/operator.md).
type Operator struct {
	Type string `json:"type" strict:"scalar"` // simulator or http
	// URL is the base URL of /ready, /commands and /messages.
	URL   string `json:"url" secret:"url"`
	Token string `json:"token" secret:"yes"` // sent as Authorization: Bearer
	// Timeout bounds a request to the back end.
	Timeout time.Duration `json:"timeout"`
	// MaxConcurrent is the largest number of concurrent commands.
	MaxConcurrent int `json:"at_once"`
	// ReportWithin is the time after which the job of a command fails if the operator has not
	// reported its end.
	ReportWithin time.Duration `json:"report_within"`
}

func (o *Operator) derive() {
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.MaxConcurrent = cmp.Or(o.MaxConcurrent, 16)
	o.ReportWithin = cmp.Or(o.ReportWithin, 24*time.Hour)
}

func (o *Operator) validate(m *strict.Mistakes) {
	oneOf(m, "operator.type", o.Type, Simulator, HTTP)
	m.AddIf(o.Type == Simulator && (o.URL != "" || o.Token != ""), "operator.type", "expected http, because url or token is set, got %q", o.Type)
	u, err := url.Parse(o.URL)
	if o.Type == HTTP && (err != nil || !isWebURL(u) || u.RawQuery != "") {
		m.Add("operator.url", "expected an http or https URL without a query") // not quoted, because it may contain a secret
	}
	asciiField(m, "operator.token", o.Token, 4096)
	m.AddIf(o.Timeout < 100*time.Millisecond || o.Timeout > 8*time.Second, "operator.timeout", "expected 100ms to 8s, got %q", o.Timeout)
	m.AddIf(o.MaxConcurrent < 1 || o.MaxConcurrent > 64, "operator.at_once", "expected 1 to 64, got %d", o.MaxConcurrent)
	m.AddIf(o.ReportWithin < time.Minute || o.ReportWithin > 30*24*time.Hour, "operator.report_within", "expected 1m to 720h, got %q", o.ReportWithin)
}
