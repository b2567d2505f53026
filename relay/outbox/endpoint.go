package outbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"time"

	"github.com/penstock/penstock/relay"
)

// Pace limits the attempts at an endpoint; zero fields add no limit to the
// gateway's own. Concurrency and PerSecond apply to each gateway, Ordered to all
// gateways together.
type Pace struct {
	// Concurrency is the maximum number of concurrent attempts.
	Concurrency int `json:"concurrency,omitempty"`
	// PerSecond is the maximum rate of attempts, evenly spread.
	PerSecond float64 `json:"per_second,omitempty"`
	// Ordered delays a delivery until the previous one has ended.
	Ordered bool `json:"ordered,omitempty"`
}

// Wait is the condition, other than a time, that a delivery waits for.
type Wait string

// The conditions that a delivery may wait for.
const (
	// WaitsForBreaker means that the endpoint fails, and its breaker is open.
	WaitsForBreaker Wait = "breaker"
	// WaitsForTurn means that an earlier delivery to the same ordered endpoint has not ended.
	WaitsForTurn Wait = "turn"
)

// EndpointName names the endpoint of a delivery: Endpoint if it is set, else a hash of
// account, kind and host.
func (d *Delivery) EndpointName() string {
	if d.Endpoint != "" {
		return d.Endpoint
	}
	return EndpointID(d.Account, string(d.Kind), d.host())
}

func (d *Delivery) host() string {
	if d.Request == nil {
		return d.Target()
	}
	u, err := url.Parse(d.Request.URL)
	if err != nil {
		return "unreadable"
	}
	return u.Host
}

// EndpointID returns the id of an account's endpoint, a hash of its distinguishing
// parts.
func EndpointID(acct relay.AccountID, parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q", acct, parts))
	return hex.EncodeToString(sum[:8])
}

// ParkedEndpoint is an endpoint with deliveries that wait for its breaker.
type ParkedEndpoint struct {
	Account  relay.AccountID
	Endpoint string
	// First is the earliest ParkedUntil of the deliveries.
	First time.Time
}

// Breaker is an open circuit breaker: its endpoint failed too often in a row.
type Breaker struct {
	Endpoint string          `json:"endpoint"`
	Account  relay.AccountID `json:"account"`
	Relay    string          `json:"relay,omitempty"`
	// Target is the target of the last attempt, without secrets.
	Target string `json:"target"`
	// Reason explains why the last attempt failed, in words that users of the account may
	// read.
	Reason   string    `json:"reason"`
	OpenedAt time.Time `json:"opened_at"`
	// Probes counts the attempts since OpenedAt; the next may be made at ProbeAt.
	Probes  int       `json:"probes"`
	ProbeAt time.Time `json:"probe_at"`
}
