package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/penstock/penstock/relay/ledger/merkle"
)

// Document is a history as it is handed out, and verified offline.
type Document struct {
	Data []DocumentEntry `json:"data"`
	Meta DocumentMeta    `json:"meta"`
}

// DocumentEntry is an entry. Its leaf is the canonical JSON of at, data and type;
// its place in the tree is its sequence.
type DocumentEntry struct {
	Sequence int64           `json:"sequence"`
	Type     EntryType       `json:"type"`
	At       string          `json:"at"`
	Hash     string          `json:"hash"`
	Data     json.RawMessage `json:"data"`
}

// DocumentMeta is what proves the entries.
type DocumentMeta struct {
	TreeSize  int64           `json:"tree_size"`
	RootHash  string          `json:"root_hash"`
	Signature string          `json:"signature"` // the signed checkpoint: origin, size, root, signature
	Key       string          `json:"key"`       // which verifies it
	Proof     [][]merkle.Hash `json:"proof"`     // of each entry, in their order
}

// Document is the history as it is handed out.
func (h History) Document() Document {
	d := Document{Data: []DocumentEntry{}, Meta: DocumentMeta{
		TreeSize: h.Head.Size, RootHash: h.Head.Root.String(), Signature: h.Signed, Key: h.Key, Proof: [][]merkle.Hash{},
	}}
	for i, e := range h.Entries {
		d.Data = append(d.Data, DocumentEntry{Sequence: e.Sequence, Type: e.Type, At: e.At, Hash: e.Hash, Data: e.Data})
		d.Meta.Proof = append(d.Meta.Proof, append([]merkle.Hash{}, h.Proofs[i]...))
	}
	return d
}

// VerifyHistory checks a history that was handed out, as JSON, by a public key;
// an empty one stands for the one it names itself, which only shows that it is
// whole.
func VerifyHistory(text []byte, key string) (Report, error) {
	var d Document
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&d); err != nil {
		return Report{}, fmt.Errorf("history: %w", err)
	}
	if d.Meta.Signature == "" {
		return Report{}, errors.New("history: it has no meta.signature")
	}
	r := Report{Pinned: key != "", Key: key}
	if key == "" {
		r.Key = d.Meta.Key
	}
	if !r.open(d.Meta.Signature, "the history is not signed by the key: ") {
		return r, nil
	}
	if d.Meta.TreeSize != r.Head.Size || d.Meta.RootHash != r.Head.Root.String() {
		r.fault(-1, "tree_size and root_hash are not those that were signed")
	}
	if len(d.Meta.Proof) != len(d.Data) {
		r.fault(-1, fmt.Sprintf("there are %d entries and %d proofs", len(d.Data), len(d.Meta.Proof)))
		return r, nil
	}
	for i, e := range d.Data {
		r.Entries++
		r.entry(e, d.Meta.Proof[i], i > 0 && e.Sequence <= d.Data[i-1].Sequence)
	}
	return r, nil
}

// entry checks one entry of a history.
func (r *Report) entry(e DocumentEntry, proof []merkle.Hash, early bool) {
	b, err := canonical(leaf{At: e.At, Data: e.Data, Type: e.Type})
	switch {
	case err != nil:
		r.fault(e.Sequence, "cannot be read: "+err.Error())
	case merkle.LeafHash(b).String() != e.Hash:
		r.fault(e.Sequence, "was changed: it does not have its hash")
	case e.Sequence < 0 || e.Sequence >= r.Head.Size || merkle.CheckProof(proof, r.Head, e.Sequence, b) != nil:
		r.fault(e.Sequence, "is not part of the ledger at that place")
	case early:
		r.fault(e.Sequence, "stands out of order")
	}
}
