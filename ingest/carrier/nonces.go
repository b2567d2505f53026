package carrier

import (
	"crypto/sha256"
	"sync"
)

// maxNonces is how many nonces are remembered, the latest. The nonce of one
// post in a hundred thousand later ones is forgotten; its message id is not.
const maxNonces = 100_000

// nonces remembers what each nonce was used for.
type nonces struct {
	mu   sync.Mutex
	used map[string][sha256.Size]byte
	ring []string
	next int
}

func newNonces() *nonces { return &nonces{used: make(map[string][sha256.Size]byte)} }

// first reports whether a nonce is used for the first time, or again for the
// same request: a carrier that saw no answer repeats what it sent.
func (n *nonces) first(nonce string, r *Signed) bool {
	sum := sha256.Sum256(append([]byte(r.URL+"\x00"), r.Body...))
	n.mu.Lock()
	defer n.mu.Unlock()
	if before, there := n.used[nonce]; there {
		return before == sum
	}
	nonce = string([]byte(nonce)) // the request's memory is used again
	if len(n.ring) < maxNonces {
		n.ring = append(n.ring, nonce)
	} else {
		delete(n.used, n.ring[n.next])
		n.ring[n.next] = nonce
		n.next = (n.next + 1) % maxNonces
	}
	n.used[nonce] = sum
	return true
}
