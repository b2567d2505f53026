package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/penstock/penstock/relay/ledger/merkle"
)

// Document is a history as the API returns it, for verification offline.
type Document struct {
	// Data has the entries. The leaf of an entry is the canonical JSON of at, data and type; its
	// index in the tree is its sequence.
	Data []Entry      `json:"data"`
	Meta DocumentMeta `json:"meta"`
}

// DocumentMeta is the proof of the entries.
type DocumentMeta struct {
	TreeSize  int64           `json:"tree_size"`
	RootHash  string          `json:"root_hash"`
	Signature string          `json:"signature"` // the signed checkpoint: origin, size, root, signature
	Key       string          `json:"key"`       // the public key that verifies the signature
	Proof     [][]merkle.Hash `json:"proof"`     // the inclusion proof of each entry
	// All is a signed merkle.Subset. It proves that Data has all entries of the token among the
	// first tree_size entries of the ledger.
	All string `json:"all"`
}

// VerifyHistory checks a history, as the API returned it, with a public key. Without a key,
// VerifyHistory uses the key in the history, which only shows that the history is consistent. A
// missing entry of the token is a fault. An earlier head must equal the head of the history,
// because a history does not prove that its head extends another one.
func VerifyHistory(text []byte, key string, earlier ...string) (Report, error) {
	var d Document
	if err := decodeJSON(text, &d); err != nil {
		return Report{}, fmt.Errorf("history: %w", err)
	}
	if d.Meta.Signature == "" {
		return Report{}, errors.New("history: meta.signature is missing")
	}
	r := Report{Pinned: key != "", Key: key}
	if key == "" {
		r.Key = d.Meta.Key
	}
	if !r.openHead(d.Meta.Signature, "the history is not signed by the key: ") {
		return r, nil
	}
	if d.Meta.Key != strings.TrimSpace(r.Key) {
		r.addFault(-1, "meta.key is not the key that signed the history")
	}
	if d.Meta.TreeSize != r.Head.Size || d.Meta.RootHash != r.Head.Root.String() {
		r.addFault(-1, "tree_size and root_hash differ from the signed head")
	}
	for _, head := range r.openEarlier(earlier) {
		if head != r.Head {
			r.addFault(-1, fmt.Sprintf("a history does not prove that the ledger begins with the earlier head of %d entries; an export does", head.Size))
		}
	}
	if len(d.Meta.Proof) != len(d.Data) {
		r.addFault(-1, fmt.Sprintf("there are %d entries and %d proofs", len(d.Data), len(d.Meta.Proof)))
		return r, nil
	}
	for i, e := range d.Data {
		r.Entries++
		b, err := canonical(leaf{At: e.At, Data: e.Data, Type: e.Type})
		switch {
		case err != nil:
			r.addFault(e.Sequence, "cannot be read: "+err.Error())
		case merkle.LeafHash(b).String() != e.Hash:
			r.addFault(e.Sequence, "was changed: it does not have its hash")
		case e.Sequence < 0 || e.Sequence >= r.Head.Size || merkle.CheckProof(d.Meta.Proof[i], r.Head, e.Sequence, b) != nil:
			r.addFault(e.Sequence, "is not in the ledger at this position")
		case i > 0 && e.Sequence <= d.Data[i-1].Sequence:
			r.addFault(e.Sequence, "is out of order")
		}
	}
	r.checkComplete(d)
	return r, nil
}

// checkComplete checks that no entry of the token is missing.
func (r *Report) checkComplete(d Document) {
	if d.Meta.All == "" {
		r.addFault(-1, "meta.all is missing: it would prove that the history has every entry of its token")
		return
	}
	subset, err := merkle.OpenSubset(d.Meta.All, r.Key)
	if err != nil {
		r.addFault(-1, "meta.all is not signed by the key: "+err.Error())
		return
	}
	var fold merkle.Fold
	for _, e := range d.Data {
		var data event
		leaf, err := merkle.ParseHash(e.Hash)
		if err != nil || json.Unmarshal(e.Data, &data) != nil {
			r.addFault(e.Sequence, "cannot be read")
			return
		}
		fold.Add(leaf)
		if subjectOf(data.Token) != subset.Subject {
			r.addFault(e.Sequence, "belongs to another token than the history")
		}
	}
	if subset.Tree != r.Head.Size {
		r.addFault(-1, fmt.Sprintf("meta.all belongs to another head: it covers %d entries", subset.Tree))
	}
	if missing := subset.Head.Size - fold.Size(); missing > 0 {
		r.addFault(-1, fmt.Sprintf("the history has %d of the %d entries of its token", fold.Size(), subset.Head.Size))
	} else if subset.Head.Root != fold.Root() {
		r.addFault(-1, "the history does not have the entries of its token that were signed in meta.all")
	}
	r.Scope = fmt.Sprintf("all that %s has among the first %d of the ledger", strings.Replace(subset.Subject, "/", " ", 1), subset.Tree)
}
