// Package gateway provides the gateways that work on one database: which they are, what
// must be the same at all of them, the settings that they share, whose turn it is to do
// periodic work, and which of them holds the binds of a carrier.
package gateway

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Gateway is a running gateway, as it registered itself.
type Gateway struct {
	// Node is the name of the gateway; the ids of its events begin with it.
	Node string `json:"node"`
	// URL is the address for the other gateways, without a slash at the end.
	URL       string    `json:"url"`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"` // UTC
	SeenAt    time.Time `json:"seen_at"`    // its last heartbeat, UTC
	Facts     Facts     `json:"-"`
}

// HeartbeatEvery is the interval of heartbeats. A gateway counts as away AwayAfter its last
// heartbeat. A gateway that starts watches, for WatchFor, the heartbeats of a gateway that
// is registered under the same name elsewhere: long enough although one heartbeat fails and
// the next waits for a Redis that hangs.
const (
	HeartbeatEvery = 2 * time.Second
	WatchFor       = 3 * HeartbeatEvery
	AwayAfter      = 20 * time.Second
)

// Away reports whether the gateway has stopped sending heartbeats.
func (g *Gateway) Away(now time.Time) bool { return now.Sub(g.SeenAt) > AwayAfter }

// Facts are the settings of a gateway that must be the same at all gateways, by name. The
// value of a secret is its fingerprint.
type Facts map[Fact]string

// Fact is the name of a setting that must be the same at all gateways.
type Fact string

// The facts.
const (
	Redis      Fact = "redis"       // an id that is stored in Redis
	Readings   Fact = "readings"    // the store of readings
	LedgerKey  Fact = "ledger_key"  // fingerprint of the newest master key
	AdminToken Fact = "admin_token" // fingerprint
	PublicURL  Fact = "public_url"  // the beginning of links
)

// Facts that distinguish two processes of one name.
const (
	Incarnation Fact = "incarnation" // random, of the process
	Place       Fact = "place"       // the host, its boot, and the data directory on it
)

// Embedded is the beginning of the fact of a back end that only one gateway can reach.
const Embedded = "embedded "

// remedies returns an instruction for each fact in which gateways may differ.
func remedies() map[Fact]string {
	return map[Fact]string{
		Redis:      "set redis.url of all gateways to one Redis",
		Readings:   "set influx.url and influx.bucket of all gateways to one bucket of one InfluxDB",
		LedgerKey:  "give all gateways the same ledger.master_key",
		AdminToken: "give all gateways the same admin_token",
		PublicURL:  "set public_url of all gateways to the address at which the outside reaches them",
	}
}

// Conflicts returns a line for each fact in which another gateway that is not away differs
// from self, with an instruction.
func Conflicts(self *Gateway, gateways []Gateway, now time.Time) []string {
	var conflicts []string
	for _, fact := range []Fact{Redis, Readings, LedgerKey, AdminToken, PublicURL} {
		var otherNodes []string
		for i := range gateways {
			g := &gateways[i]
			if fact == AdminToken && g.Facts[LedgerKey] != self.Facts[LedgerKey] {
				continue // its fingerprint differs with the master key
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

// Halt records that the database of the gateways was found in an earlier state than a
// gateway has seen. It is stored in that database, so that all its gateways stop
// processing, until one of them has recovered.
type Halt struct {
	Node      string    `json:"node"`       // of the gateway that found it
	Since     time.Time `json:"since"`      // when it was found
	LastWrite time.Time `json:"last_write"` // of the earlier state; zero if it has none
	// RecoveredAt is the time at which a gateway recovered; zero before that.
	RecoveredAt time.Time `json:"recovered_at"`
}

// Holds reports whether the halt is not recovered.
func (h *Halt) Holds() bool { return !h.Since.IsZero() && h.RecoveredAt.IsZero() }

// Reason explains why the outcome of a message is unknown that was due before the halt.
func (h *Halt) Reason() string {
	return fmt.Sprintf("the database was put back to its state of %s: whether the message was sent or deleted from then until %s is unknown",
		h.LastWrite.UTC().Format(time.RFC3339), h.Since.UTC().Format(time.RFC3339))
}
