package submit

import (
	"strings"

	"github.com/penstock/penstock/delivery/carrier"
)

// Route is a carrier and the numbers that it serves.
type Route struct {
	Name string
	// Connections are the connections to the carrier, at least one. When one is lost, its parts
	// are submitted over the others.
	Connections []Connection
	// Prefixes are the prefixes of the carrier's numbers; empty means all numbers.
	Prefixes []string
	// PerSecond is the maximum number of parts per second over all connections; 0 means no
	// limit.
	PerSecond float64
	// BoundElsewhere reports whether another gateway holds the carrier's binds: then only that
	// gateway sends the carrier's messages. nil means never.
	BoundElsewhere func() bool
	// Idempotent means that the carrier recognizes a part that is submitted twice.
	Idempotent bool
	// Sequential means that the parts of a message are submitted one at a time, because the carrier
	// does not keep their order.
	Sequential bool
	// ReceiptsByCarrierID means that receipts name a part by the id that the carrier returned.
	ReceiptsByCarrierID bool
	// FitsSevenBit reports whether the carrier encodes a text of the GSM alphabet in 7
	// bits; other texts are sent as UCS-2. nil means all texts.
	FitsSevenBit func(text string) bool
	// AcceptsOriginator reports whether the carrier passes on an originator; nil means all.
	AcceptsOriginator func(originator string) bool
}

// Connection is a connection to a carrier: a bind to its SMSC, or its HTTP interface.
type Connection struct {
	Name    string // of the bind; empty for an HTTP carrier
	Carrier carrier.Carrier
	// Window is the maximum number of parts in flight; 0 means 10.
	Window int
	// PerSecond is the maximum number of parts per second; 0 means no limit.
	PerSecond float64
}

// queueFor returns the queue of the route with the longest prefix of a number, nil if there is
// none. Of two routes with this prefix the first wins.
func (s *Submitter) queueFor(number string) (selected *carrierQueue) {
	longest := -1
	for _, q := range s.queues {
		prefixes := q.route.Prefixes
		if len(prefixes) == 0 {
			prefixes = []string{""} // every number
		}
		for _, prefix := range prefixes {
			if len(prefix) > longest && strings.HasPrefix(number, prefix) {
				selected, longest = q, len(prefix)
			}
		}
	}
	return selected
}
