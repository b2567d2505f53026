package merkle

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// MaxFaults is the largest number of listed faults; further faults are only counted.
const MaxFaults = 100

// Fault is a fault of a ledger.
type Fault struct {
	// Sequence is the sequence of the entry, from 0; -1 for a fault of the whole tree.
	Sequence int64
	Problem  string
}

// String returns the problem with the number of the entry.
func (f Fault) String() string {
	if f.Sequence < 0 {
		return f.Problem
	}
	return fmt.Sprintf("entry %d %s", f.Sequence, f.Problem)
}

// Checker verifies the entries of a whole ledger, in order, against their stored hashes and
// against signed heads. It continues after a fault.
type Checker struct {
	heads    []Head // the last one is the head of the whole ledger
	fold     Fold
	faults   []Fault
	count    int
	expected map[tlog.Hash]int64 // the sequences of faulty entries by stored leaf hash
	found    map[tlog.Hash]int64 // the sequences of faulty entries by computed leaf hash
}

// NewChecker returns a checker for a head and earlier heads of the same ledger.
func NewChecker(head Head, earlier ...Head) *Checker {
	return &Checker{heads: append(earlier, head), expected: map[tlog.Hash]int64{}, found: map[tlog.Hash]int64{}}
}

// Entry adds the bytes of the next entry (nil if it is missing) and its stored hashes: none, only
// the leaf hash, or the leaf hash and the roots of the subtrees that the entry completes.
func (c *Checker) Entry(data []byte, stored []tlog.Hash) {
	n := c.fold.Size()
	var leaf tlog.Hash
	if data != nil {
		leaf = tlog.RecordHash(data)
	}
	hash := leaf
	if len(stored) > 0 {
		hash = stored[0]
	}
	switch {
	case data == nil:
		c.addFault(n, "is missing")
	case len(stored) == 0 || leaf == hash:
	default:
		c.addFault(n, "was changed")
		c.expected[hash], c.found[leaf] = n, n
	}
	// Add the stored hash of a faulty entry, so that later entries are not reported because of it.
	computed := c.fold.Add(hash)
	for i := 1; i < len(stored) && i < len(computed); i++ {
		if stored[i] != computed[i] {
			c.addFault(n, fmt.Sprintf("completes a subtree of %d entries whose stored hash was changed", int64(1)<<i))
			break
		}
	}
	for _, h := range c.heads {
		if h.Size == c.fold.Size() && h.Root != c.fold.Root() {
			c.addFault(-1, fmt.Sprintf("the first %d entries do not match the signed head", h.Size))
		}
	}
}

// Size returns the number of entries.
func (c *Checker) Size() int64 { return c.fold.Size() }

func (c *Checker) addFault(n int64, problem string) {
	if c.count++; c.count <= MaxFaults {
		c.faults = append(c.faults, Fault{n, problem})
	}
}

// Faults ends the check. It returns up to MaxFaults faults, in order, and the total number of
// faults. Entries that only changed places are reported as moved.
func (c *Checker) Faults() ([]Fault, int) {
	for _, h := range c.heads {
		if h.Size > c.fold.Size() {
			c.addFault(-1, fmt.Sprintf("entries %d to %d are missing: the signed head has %d entries", c.fold.Size(), h.Size-1, h.Size))
		}
		if h.Size == 0 && h.Root != new(Fold).Root() {
			c.addFault(-1, "the head without entries does not have the root of the empty tree")
		}
	}
	movedTo := make(map[int64]string)
	for leaf, n := range c.found {
		if origin, ok := c.expected[leaf]; ok && origin != n {
			movedTo[n] = fmt.Sprintf("was moved: entry %d is in its place", origin)
		}
	}
	for i, f := range c.faults {
		if moved, ok := movedTo[f.Sequence]; ok && f.Problem == "was changed" {
			c.faults[i].Problem = moved
		}
	}
	return c.faults, c.count
}
