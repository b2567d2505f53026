package carrier

import (
	"fmt"
	"hash/maphash"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/inbound"
)

// parsed is what was found in a post.
type parsed struct {
	messages []inbound.Message
	err      error
}

// Keys returns a key per carrier message id, so that posts with the same id are
// processed in order: the first is the message. It keeps the parsed post for Process.
func (p *Processor) Keys(it *intake.Item, keys []uint64) []uint64 {
	found, err := p.messages(it)
	it.Prepared = parsed{found, err}
	for i := range found {
		if m := &found[i]; m.CarrierID != "" {
			keys = append(keys, hashKey(p.seed, "%d %q %q", m.Account, m.Carrier, m.CarrierID))
		}
	}
	return keys
}

// hashKey returns the hash of a formatted key.
func hashKey(seed maphash.Seed, format string, values ...any) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = fmt.Fprintf(&h, format, values...)
	return h.Sum64()
}

// prepared returns the messages of a post, which Keys may have read already.
func (p *Processor) prepared(it *intake.Item) ([]inbound.Message, error) {
	if in, ok := it.Prepared.(parsed); ok {
		return in.messages, in.err
	}
	return p.messages(it)
}
