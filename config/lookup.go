package config

import (
	"net/url"
	"strings"
	"time"

	"github.com/penstock/penstock/config/strict"
)

// HTTP is the type of back end that is asked over HTTP.
const HTTP = "http"

// Lookup is the service that returns the network of a number, and how long the answer is
// remembered.
type Lookup struct {
	Type string `json:"type" strict:"scalar"` // simulator or http
	// URL is asked with a GET; %number stands for the number.
	URL   string `json:"url"`
	Token string `json:"token"` // sent as Authorization: Bearer
	// Timeout bounds a request to the back end.
	Timeout time.Duration `json:"timeout"`
	// Cache is how long an answer is remembered; 0: not at all.
	Cache time.Duration `json:"cache"`
}

// derive fills in defaults.
func (l *Lookup) derive() {
	if l.Timeout == 0 {
		l.Timeout = 10 * time.Second
	}
}

func (l *Lookup) validate(m *strict.Mistakes) {
	oneOf(m, "lookup.type", l.Type, Simulator, HTTP)
	if l.Type == Simulator && (l.URL != "" || l.Token != "") {
		m.Add("lookup.type", "expected http, because settings of it are there, got %q", l.Type)
	}
	u, err := url.Parse(strings.ReplaceAll(l.URL, "%number", "0"))
	if l.Type == HTTP && (err != nil || !web(u)) {
		m.Add("lookup.url", "expected an http or https URL") // which may hold a secret
	}
	asciiField(m, "lookup.token", l.Token, 4096)
	if l.Timeout < 100*time.Millisecond || l.Timeout > time.Minute {
		m.Add("lookup.timeout", "expected 100ms to 1m, got %q", l.Timeout)
	}
	if l.Cache < 0 || l.Cache > 30*24*time.Hour {
		m.Add("lookup.cache", "expected 0s to 720h, got %q", l.Cache)
	}
}
