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

// Lookup is the service that returns the network of a number, and how long the answer is
// remembered.
type Lookup struct {
	Type string `json:"type" strict:"scalar"` // simulator or http
	// URL gets a GET; %number stands for the number.
	URL   string `json:"url" secret:"url"`
	Token string `json:"token" secret:"yes"` // sent as Authorization: Bearer
	// Timeout bounds a request to the back end.
	Timeout time.Duration `json:"timeout"`
	// Cache is the time for which an answer is remembered; 0: not at all.
	Cache time.Duration `json:"cache"`
}

// derive fills in defaults.
func (l *Lookup) derive() {
	l.Timeout = cmp.Or(l.Timeout, 10*time.Second)
}

func (l *Lookup) validate(m *strict.Mistakes) {
	oneOf(m, "lookup.type", l.Type, Simulator, HTTP)
	m.AddIf(l.Type == Simulator && (l.URL != "" || l.Token != ""), "lookup.type", "expected http, because settings of it are there, got %q", l.Type)
	u, err := url.Parse(strings.ReplaceAll(l.URL, "%number", "0"))
	if l.Type == HTTP && (err != nil || !web(u)) {
		m.Add("lookup.url", "expected an http or https URL") // which may hold a secret
	}
	asciiField(m, "lookup.token", l.Token, 4096)
	m.AddIf(l.Timeout < 100*time.Millisecond || l.Timeout > time.Minute, "lookup.timeout", "expected 100ms to 1m, got %q", l.Timeout)
	m.AddIf(l.Cache < 0 || l.Cache > 30*24*time.Hour, "lookup.cache", "expected 0s to 720h, got %q", l.Cache)
}

// Operator configures the SIM operator (docs/operator.md).
type Operator struct {
	Type string `json:"type" strict:"scalar"` // simulator or http
	// URL is the base to which /ready, /commands and /messages are appended.
	URL   string `json:"url" secret:"url"`
	Token string `json:"token" secret:"yes"` // sent as Authorization: Bearer
	// Timeout bounds a request to the back end.
	Timeout time.Duration `json:"timeout"`
	// AtOnce is the number of commands that are under way at one time.
	AtOnce int `json:"at_once"`
	// ReportWithin is the time that the operator may take to come to the end of a command;
	// then its job fails.
	ReportWithin time.Duration `json:"report_within"`
}

// derive fills in defaults.
func (o *Operator) derive() {
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.AtOnce = cmp.Or(o.AtOnce, 16)
	o.ReportWithin = cmp.Or(o.ReportWithin, 24*time.Hour)
}

func (o *Operator) validate(m *strict.Mistakes) {
	oneOf(m, "operator.type", o.Type, Simulator, HTTP)
	m.AddIf(o.Type == Simulator && (o.URL != "" || o.Token != ""), "operator.type", "expected http, because settings of it are there, got %q", o.Type)
	u, err := url.Parse(o.URL)
	if o.Type == HTTP && (err != nil || !web(u) || u.RawQuery != "") {
		m.Add("operator.url", "expected an http or https URL without a query") // which may hold a secret
	}
	asciiField(m, "operator.token", o.Token, 4096)
	m.AddIf(o.Timeout < 100*time.Millisecond || o.Timeout > 8*time.Second, "operator.timeout", "expected 100ms to 8s, got %q", o.Timeout)
	m.AddIf(o.AtOnce < 1 || o.AtOnce > 64, "operator.at_once", "expected 1 to 64, got %d", o.AtOnce)
	m.AddIf(o.ReportWithin < time.Minute || o.ReportWithin > 30*24*time.Hour, "operator.report_within", "expected 1m to 720h, got %q", o.ReportWithin)
}
