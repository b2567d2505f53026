package inventory

import (
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// parameterKind is the kind of an action's parameters.
type parameterKind int

const (
	unknownAction parameterKind = iota
	noParameters
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

func (c *checker) relays(a *Account, prefix string) {
	for i, r := range a.Relays.Geo {
		path := fmt.Sprintf("%srelays.geo[%d].", prefix, i)
		c.claim("prefix", r.Prefix, path+"prefix")
		c.relay("geo", NumberRelay{ID: r.ID, Action: r.Action, Parameters: r.Parameters, Filter: r.Filter, Pace: r.Pace}, geoActions()[r.Action], prefix, path)
		hasICCID := func(s SIM) bool { return s.ICCID == r.ICCID }
		switch {
		case r.ICCID == "":
			c.mistakes.AddIf(r.Action == "mvno", path+"iccid", "expected the ICCID of the SIM that mvno serves")
		case !slices.ContainsFunc(a.SIMs, hasICCID) && !slices.ContainsFunc(c.remaining.account(*a).SIMs, hasICCID):
			c.mistakes.Add(path+"iccid", "expected the ICCID of a SIM of this account, got %q", clipValue(r.ICCID))
		}
	}
	for i, r := range a.Relays.VMN {
		path := fmt.Sprintf("%srelays.vmn[%d].", prefix, i)
		c.claim("number", r.Number, path+"number")
		c.relay("vmn", r, numberActions()[r.Action], prefix, path)
	}
}

// The limits of a pace. The slowest is one request per hour.
const (
	maxConcurrency = 1000
	maxPerSecond   = 10_000
	minPerSecond   = 1.0 / 3600
)

// relay checks the fields that relays of both kinds have. An id is unique over both kinds,
// because deliveries name their relay by its id only.
func (c *checker) relay(kind string, r NumberRelay, parameters parameterKind, accountPath, prefix string) {
	c.claim(accountPath+"relay", r.ID, prefix+"id")
	c.mistakes.AddIf(parameters == noParameters && len(r.Parameters) > 0, prefix+"parameters", "expected none for the action %s", r.Action)
	c.mistakes.AddIf(parameters > noParameters && len(r.Parameters) == 0, prefix+"parameters", "expected at least one for the action %s", r.Action)
	for i, p := range r.Parameters {
		path := fmt.Sprintf("%sparameters[%d]", prefix, i)
		switch parameters {
		case endpoints:
			if !c.origin(p, path) || c.CheckEndpoint == nil {
				continue
			}
			if err := c.CheckEndpoint(kind, p); err != nil {
				c.mistakes.Add(path, "expected a URL that can be called: %s", err)
			}
		case mailboxes:
			if _, err := mail.ParseAddress(p); err != nil || strings.ContainsFunc(p, func(r rune) bool { return r > unicode.MaxASCII }) {
				c.mistakes.Add(path, "expected a mail address, got %q", clipValue(p))
			}
		case labels:
			if problem := checkName(p, nil); problem != "" {
				c.mistakes.Add(path, "%s", problem)
			}
		}
	}
	if r.Filter != "" && c.CheckFilter != nil {
		if err := c.CheckFilter(r.Filter); err != nil {
			c.mistakes.Add(prefix+"filter", "expected a condition that compiles: %s", err)
		}
	}
	p := r.Pace
	c.mistakes.AddIf(p.Concurrency < 0 || p.Concurrency > maxConcurrency, prefix+"pace.concurrency", "expected 1 to %d, or 0 for no bound, got %d", maxConcurrency, p.Concurrency)
	c.mistakes.AddIf(p.PerSecond != 0 && !(p.PerSecond >= minPerSecond && p.PerSecond <= maxPerSecond), prefix+"pace.per_second",
		"expected 1/3600 to %d, or 0 for no bound, got %v", maxPerSecond, p.PerSecond)
}

// origin checks the origin of a URL with placeholders, and reports whether it is valid. Path
// and query are not parsed, because net/url would reject some placeholders as invalid
// escapes.
func (c *checker) origin(raw, path string) bool {
	scheme, host, _ := strings.Cut(raw, "://")
	if end := strings.IndexAny(host, "/?#"); end >= 0 {
		host = host[:end]
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
