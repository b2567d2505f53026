package inventory

import (
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// parameterKind is what an action's parameters are.
type parameterKind int

const (
	noParameters parameterKind = iota
	endpoints
	mailboxes
	labels
)

func geoActions() map[string]parameterKind {
	return map[string]parameterKind{"black_hole": noParameters, "http_get": endpoints, "http_post": endpoints, "email": mailboxes, "mvno": noParameters}
}

func numberActions() map[string]parameterKind {
	return map[string]parameterKind{
		"inactive": noParameters, "http_get": endpoints, "http_post": endpoints, "email": mailboxes,
		"dialogue_post": endpoints, "dialogue_get": endpoints, "ms_outlook": mailboxes, "desktopsms": labels, "inbound_gw": endpoints,
	}
}

// A relay's id is one id for both kinds: deliveries name a relay by it alone.
func (c *checker) relays(a *Account, at string) {
	for i := range a.Relays.Geo {
		r := &a.Relays.Geo[i]
		path := fmt.Sprintf("%srelays.geo[%d].", at, i)
		c.claim(at+"relay", r.ID, path+"id")
		c.claim("prefix", r.Prefix, path+"prefix")
		c.action("geo", r.Action, r.Parameters, geoActions(), path)
		c.filter(r.Filter, path+"filter")
		c.servedSIM(a, r, path+"iccid")
		c.pace(r.Pace, path+"pace.")
	}
	for i := range a.Relays.VMN {
		r := &a.Relays.VMN[i]
		path := fmt.Sprintf("%srelays.vmn[%d].", at, i)
		c.claim(at+"relay", r.ID, path+"id")
		c.claim("number", r.Number, path+"number")
		c.action("vmn", r.Action, r.Parameters, numberActions(), path)
		c.filter(r.Filter, path+"filter")
		c.pace(r.Pace, path+"pace.")
	}
}

// The most a pace may ask for; the least is one request in an hour.
const (
	mostAtOnce    = 1000
	mostPerSecond = 10_000
	leastPerHour  = 1.0 / 3600
)

func (c *checker) pace(p Pace, at string) {
	c.mistakes.AddIf(p.Concurrency < 0 || p.Concurrency > mostAtOnce, at+"concurrency", "expected 1 to %d, or 0 for no bound, got %d", mostAtOnce, p.Concurrency)
	if p.PerSecond != 0 && !(p.PerSecond >= leastPerHour && p.PerSecond <= mostPerSecond) {
		c.mistakes.Add(at+"per_second", "expected 1/3600 to %d, or 0 for no bound, got %v", mostPerSecond, p.PerSecond)
	}
}

func (c *checker) filter(source, path string) {
	if source == "" || c.CheckFilter == nil {
		return
	}
	if err := c.CheckFilter(source); err != nil {
		c.mistakes.Add(path, "expected a condition that compiles: %s", err)
	}
}

func (c *checker) action(relay, name string, parameters []string, known map[string]parameterKind, at string) {
	kind, ok := known[name]
	switch {
	case !ok:
		return
	case kind == noParameters && len(parameters) > 0:
		c.mistakes.Add(at+"parameters", "expected none for the action %s", name)
	case kind != noParameters && len(parameters) == 0:
		c.mistakes.Add(at+"parameters", "expected at least one for the action %s", name)
	}
	for i, p := range parameters {
		c.parameter(relay, kind, p, fmt.Sprintf("%sparameters[%d]", at, i))
	}
}

func (c *checker) parameter(relay string, kind parameterKind, p, path string) {
	switch kind {
	case endpoints:
		c.endpoint(relay, p, path)
	case mailboxes:
		if _, err := mail.ParseAddress(p); err != nil || strings.ContainsFunc(p, func(r rune) bool { return r > unicode.MaxASCII }) {
			c.mistakes.Add(path, "expected a mail address, got %q", clipValue(p))
		}
	case labels:
		c.name(p, path)
	}
}

// endpoint checks a URL with placeholders. Those may stand in path and query
// only, where net/url would take some of them for broken escapes: so only the
// part before them is parsed.
func (c *checker) endpoint(relay, raw, path string) {
	if c.origin(raw, path) {
		c.asREST(relay, raw, path)
	}
}

// origin checks the part of a URL before its path, and reports whether it is one.
func (c *checker) origin(raw, path string) bool {
	scheme, rest, _ := strings.Cut(raw, "://")
	host := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		host = rest[:end]
	}
	scheme = strings.ToLower(scheme)
	origin := scheme + "://" + host + "/"
	u, err := url.Parse(origin)
	switch {
	case strings.Contains(host[strings.LastIndexByte(host, '@')+1:], "%"): // credentials may have escapes
		c.mistakes.Add(path, "expected no placeholder before the path, got %q", clipValue(raw))
	case err != nil || u.Hostname() == "" || scheme != "http" && scheme != "https" || strings.ContainsFunc(raw, unicode.IsControl):
		c.mistakes.Add(path, "expected an http or https URL, got %q", clipValue(raw))
	default:
		c.guard(origin, path)
		return true
	}
	return false
}

// asREST refuses what REST refuses.
func (c *checker) asREST(relay, raw, path string) {
	if c.CheckEndpoint == nil {
		return
	}
	if err := c.CheckEndpoint(relay, raw); err != nil {
		c.mistakes.Add(path, "expected a URL that can be called: %s", err)
	}
}

// servedSIM checks the SIM of a geographic relay, which mvno needs.
func (c *checker) servedSIM(a *Account, r *GeoRelay, path string) {
	if r.ICCID == "" {
		c.mistakes.AddIf(r.Action == "mvno", path, "expected the ICCID of the SIM that mvno serves")
		return
	}
	is := func(s SIM) bool { return s.ICCID == r.ICCID }
	if !slices.ContainsFunc(a.SIMs, is) && !slices.ContainsFunc(c.standing.account(*a).SIMs, is) {
		c.mistakes.Add(path, "expected the ICCID of a SIM of this account, got %q", clipValue(r.ICCID))
	}
}
