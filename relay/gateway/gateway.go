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
	// Node names it; the ids of its events begin with that.
	Node string
	// URL is where the other gateways reach it, without a slash at the end.
	URL       string
	Version   string
	StartedAt time.Time
	SeenAt    time.Time // its last heartbeat
	Facts     Facts
}

// HeartbeatEvery is the interval of heartbeats. AwayAfter is how long after its last
// heartbeat a gateway counts as away. WatchFor is how long a gateway that starts watches the
// heartbeats of one that is registered under its name elsewhere: it sees that one although
// one heartbeat fails and the next waits for a Redis that hangs.
const (
	HeartbeatEvery = 2 * time.Second
	WatchFor       = 3 * HeartbeatEvery
	AwayAfter      = 20 * time.Second
)

// Away reports whether a gateway has stopped to send heartbeats.
func (g *Gateway) Away(now time.Time) bool { return now.Sub(g.SeenAt) > AwayAfter }

// Facts are the settings of a gateway that must agree with those of the others, by
// name. Of a secret, the value is the fingerprint.
type Facts map[Fact]string

// Fact names something that must be the same at all gateways.
type Fact string

// The facts.
const (
	Redis      Fact = "redis"       // which Redis: an id that is kept in it
	Readings   Fact = "readings"    // which store of readings
	LedgerKey  Fact = "ledger_key"  // fingerprint of the newest master key
	AdminToken Fact = "admin_token" // fingerprint
	PublicURL  Fact = "public_url"  // what links begin with
)

// Facts that tell two processes of one name apart.
const (
	Incarnation Fact = "incarnation" // random, of the process
	Place       Fact = "place"       // the host, its boot, and the data directory on it
)

// Embedded begins the fact of a back end that only one gateway can reach.
const Embedded = "embedded "

// remedies returns for each fact what to do when gateways differ.
func remedies() map[Fact]string {
	return map[Fact]string{
		Redis:      "set redis.url of all gateways to one Redis",
		Readings:   "set influx.url and influx.bucket of all gateways to one bucket of one InfluxDB",
		LedgerKey:  "give all gateways the same ledger.master_key",
		AdminToken: "give all gateways the same admin_token",
		PublicURL:  "set public_url of all gateways to the address at which the outside reaches them",
	}
}

// Conflicts says what keeps gateways that are not away from working as one: each
// fact in which another one differs from the given one, and what to do.
func Conflicts(self *Gateway, all []Gateway, now time.Time) []string {
	var out []string
	for _, fact := range []Fact{Redis, Readings, LedgerKey, AdminToken, PublicURL} {
		var others []string
		for i := range all {
			g := &all[i]
			if fact == AdminToken && g.Facts[LedgerKey] != self.Facts[LedgerKey] {
				continue // its fingerprint differs with the master key
			}
			if g.Node != self.Node && !g.Away(now) && g.Facts[fact] != self.Facts[fact] {
				others = append(others, g.Node)
			}
		}
		if len(others) > 0 {
			slices.Sort(others)
			out = append(out, fmt.Sprintf("%s differs from that of gateway %s: %s", fact, strings.Join(others, ", "), remedies()[fact]))
		}
	}
	return out
}
