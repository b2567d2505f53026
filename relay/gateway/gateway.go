// Package gateway stores the state that the gateways on one database share: their registrations and
// heartbeats, generated settings, checkpoints of journals, the turns of periodic work, and the
// holders of the binds of carriers.
package gateway

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Gateway is the registration of a gateway.
type Gateway struct {
	// Node is the name of the gateway, with which the ids of its events begin.
	Node string `json:"node"`
	// URL is the URL for other gateways, without a slash at the end.
	URL       string    `json:"url"`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"` // UTC
	SeenAt    time.Time `json:"seen_at"`    // time of the last heartbeat, UTC
	Facts     Facts     `json:"-"`
}

// HeartbeatEvery is the interval of heartbeats. A gateway is away if its last heartbeat is older than
// AwayAfter. A starting gateway watches the heartbeats of another gateway with the same name for
// WatchFor, which is long enough if one heartbeat fails and the next waits for an unresponsive Redis.
const (
	HeartbeatEvery = 2 * time.Second
	WatchFor       = 3 * HeartbeatEvery
	AwayAfter      = 20 * time.Second
)

// Away reports whether the gateway has stopped sending heartbeats.
func (g *Gateway) Away(now time.Time) bool { return now.Sub(g.SeenAt) > AwayAfter }

// Facts are the properties of a gateway, by name, that other gateways compare with their own. The
// value of a secret is its fingerprint.
type Facts map[Fact]string

// Fact is the name of a property of a gateway.
type Fact string

// Facts that must be the same at all gateways.
const (
	Redis      Fact = "redis"       // an id that is stored in Redis
	Readings   Fact = "readings"    // the store of readings
	LedgerKey  Fact = "ledger_key"  // fingerprint of the newest master key
	AdminToken Fact = "admin_token" // fingerprint
	PublicURL  Fact = "public_url"
)

// Facts that distinguish two processes with the same name.
const (
	Incarnation Fact = "incarnation" // a random text of the process
	Place       Fact = "place"       // host, boot and data directory
)

// Embedded is the prefix of the value of Readings for an embedded store, which other gateways
// cannot reach.
const Embedded = "embedded "

// remedies returns an instruction for each fact that must be the same.
func remedies() map[Fact]string {
	return map[Fact]string{
		Redis:      "set redis.url of all gateways to one Redis",
		Readings:   "set influx.url and influx.bucket of all gateways to one bucket of one InfluxDB",
		LedgerKey:  "give all gateways the same ledger.master_key",
		AdminToken: "give all gateways the same admin_token",
		PublicURL:  "set public_url of all gateways to the address at which the outside reaches them",
	}
}

// Conflicts returns a line with an instruction for each fact in which self differs from another
// gateway that is not away.
func Conflicts(self *Gateway, gateways []Gateway, now time.Time) []string {
	var conflicts []string
	for _, fact := range []Fact{Redis, Readings, LedgerKey, AdminToken, PublicURL} {
		var otherNodes []string
		for i := range gateways {
			g := &gateways[i]
			if fact == AdminToken && g.Facts[LedgerKey] != self.Facts[LedgerKey] {
				continue // the fingerprint of the token depends on the master key
			}
			if g.Node != self.Node && !g.Away(now) && g.Facts[fact] != self.Facts[fact] {
				otherNodes = append(otherNodes, g.Node)
			}
		}
		if len(otherNodes) > 0 {
			slices.Sort(otherNodes)
			conflicts = append(conflicts, fmt.Sprintf("%s differs from that of gateway %s: %s", fact, strings.Join(otherNodes, ", "), remedies()[fact]))
		}
	}
	return conflicts
}

// Halt records that a gateway has found the database in an earlier state. It is stored in
// the database, so that all gateways stop processing until one of them has recovered.
type Halt struct {
	Node      string    `json:"node"`       // name of the gateway that found the earlier state
	Since     time.Time `json:"since"`      // time at which it was found
	LastWrite time.Time `json:"last_write"` // last write of the earlier state; zero if it has none
	// RecoveredAt is the time at which a gateway recovered; zero before that.
	RecoveredAt time.Time `json:"recovered_at"`
}

// IsActive reports whether no gateway has recovered since the halt.
func (h *Halt) IsActive() bool { return !h.Since.IsZero() && h.RecoveredAt.IsZero() }

// Reason returns the reason why the outcome of messages that were due before the halt is unknown.
func (h *Halt) Reason() string {
	return fmt.Sprintf("the database was restored to its state of %s: it is unknown whether the message was sent or deleted between that time and %s",
		h.LastWrite.UTC().Format(time.RFC3339), h.Since.UTC().Format(time.RFC3339))
}
