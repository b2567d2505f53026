// Package merkle makes the entries of a ledger tamper-evident. The entries are the leaves of a
// Merkle tree (RFC 6962, golang.org/x/mod/sumdb/tlog), whose head is signed as a checkpoint
// (C2SP tlog-checkpoint, golang.org/x/mod/sumdb/note).
//
// Checker names the entries that were changed, removed or moved. The package does not depend on
// the content of entries, on stores or on clocks.
package merkle

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Hash is the SHA-256 hash of a node.
type Hash = tlog.Hash

// Head is the size and root hash of a tree.
type Head struct {
	Origin string // the name of the tree, see Origin
	Size   int64  // number of entries
	Root   tlog.Hash
}

// Origin returns the first line of a ledger's checkpoints, which is also the name of its key.
func Origin(ledgerHash string) string { return "penstock/ledger/" + ledgerHash }

// NewKey returns a key pair that signs the heads of an origin, in the text format of package note.
func NewKey(origin string) (private, public string, err error) {
	return note.GenerateKey(rand.Reader, origin)
}

// PublicOf returns the public key of a private key.
func PublicOf(private string) (string, error) {
	signer, err := note.NewSigner(private)
	if err != nil {
		return "", fmt.Errorf("head: key: %w", err)
	}
	// The fifth part, which may contain plus signs, is the base64 of the algorithm (1 for Ed25519)
	// and the seed.
	b, err := base64.StdEncoding.DecodeString(strings.SplitN(private, "+", 5)[4])
	if err != nil || len(b) != 1+ed25519.SeedSize || b[0] != 1 {
		return "", errors.New("head: key: not an Ed25519 key")
	}
	return note.NewEd25519VerifierKey(signer.Name(), ed25519.NewKeyFromSeed(b[1:]).Public().(ed25519.PublicKey))
}

// Sign returns the head as a signed checkpoint. private must be a key of NewKey for the head's origin.
func Sign(h Head, private string) (string, error) {
	return sign("head", h.text(), private)
}

func (h Head) text() string {
	return h.Origin + "\n" + strconv.FormatInt(h.Size, 10) + "\n" + h.Root.String() + "\n"
}

// nameExtension is the prefix of the extension line with the name of the ledger.
const nameExtension = "name "

// SignNamed signs a head like Sign. It adds an extension line with the name of the ledger in quotes.
func SignNamed(h Head, name, private string) (string, error) {
	return sign("head", h.text()+nameExtension+strconv.Quote(name)+"\n", private)
}

// NameOf returns the name in a checkpoint of SignNamed; empty if there is none. It does not verify
// the signature.
func NameOf(signed string) string {
	text, _, _ := strings.Cut(signed, "\n\n")
	_, quoted, _ := strings.Cut(text, "\n"+nameExtension)
	name, _ := strconv.Unquote(quoted)
	return name
}

// Open verifies and reads a signed checkpoint. Open returns an error unless the public key
// verifies one of the signatures. Extension lines are ignored.
func Open(signed, public string) (Head, error) {
	text, name, err := open("head", signed, public)
	if err != nil {
		return Head{}, err
	}
	h, err := parseHead(text)
	if err == nil && h.Origin != name {
		err = fmt.Errorf("head: its origin is %q, but the key is that of %q", h.Origin, name)
	}
	return h, err
}

func sign(label, text, private string) (string, error) {
	signer, err := note.NewSigner(private)
	if err != nil {
		return "", fmt.Errorf("%s: key: %w", label, err)
	}
	if origin, _, _ := strings.Cut(text, "\n"); !strings.HasPrefix(origin, signer.Name()) {
		return "", fmt.Errorf("%s: its origin is %q, but the key is that of %q", label, origin, signer.Name())
	}
	signed, err := note.Sign(&note.Note{Text: text}, signer)
	if err != nil {
		return "", fmt.Errorf("%s: sign: %w", label, err)
	}
	return string(signed), nil
}

// open returns the text of a signed note and the name of the key.
func open(label, signed, public string) (text, name string, err error) {
	verifier, err := note.NewVerifier(strings.TrimSpace(public))
	if err != nil {
		return "", "", fmt.Errorf("%s: public key: %w", label, err)
	}
	n, err := note.Open([]byte(signed), note.VerifierList(verifier))
	if err != nil {
		return "", "", fmt.Errorf("%s: signature: %w", label, err)
	}
	return n.Text, verifier.Name(), nil
}

func parseHead(text string) (h Head, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 || slices.Index(lines, "") != len(lines)-1 {
		return h, fmt.Errorf("head: %d lines, expected an origin, a size, a root and optional non-empty extensions", len(lines)-1)
	}
	h.Origin = lines[0]
	if h.Size, err = parseSize(lines[1]); err != nil {
		return Head{}, err
	}
	if h.Root, err = tlog.ParseHash(lines[2]); err != nil {
		return Head{}, fmt.Errorf("head: root: %w", err)
	}
	return h, nil
}

// parseSize parses a number of entries, without leading zeros.
func parseSize(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("head: invalid size %q", text)
	}
	return n, nil
}

// Fold computes the root of a tree from its entries in order. The zero value is the empty tree.
type Fold struct {
	size  int64
	stack []tlog.Hash // roots of the complete subtrees, the largest first
}

// Read loads stored hashes by their indexes.
type Read func(indexes []int64) ([]Hash, error)

// LeafHash returns the hash of an entry's bytes.
func LeafHash(entry []byte) Hash { return tlog.RecordHash(entry) }

// StoredAt returns the index of the first stored hash of an entry.
func StoredAt(sequence int64) int64 { return tlog.StoredHashCount(sequence) }

// Prove returns the inclusion proof of an entry in the tree of the first size
// entries, RFC 6962 section 2.1.1.
func Prove(size, sequence int64, read Read) ([]Hash, error) {
	return tlog.ProveRecord(size, sequence, tlog.HashReaderFunc(read))
}

// CheckProof returns an error unless the proof shows that the tree of h has the entry at a sequence.
func CheckProof(proof []Hash, h Head, sequence int64, entry []byte) error {
	return tlog.CheckRecord(proof, h.Size, h.Root, sequence, LeafHash(entry))
}

// CheckExtends returns an error unless the tree of a head begins with the tree of an earlier head.
// It computes the consistency proof (RFC 6962 section 2.1.2) from the stored hashes.
func CheckExtends(h, earlier Head, read Read) error {
	switch {
	case earlier.Size > h.Size:
		return fmt.Errorf("head: it has %d entries, but the earlier head has %d", h.Size, earlier.Size)
	case earlier.Size == h.Size && earlier.Root != h.Root:
		return errors.New("head: its root differs from that of the earlier head of the same size")
	case earlier.Size == h.Size, earlier.Size == 0:
		return nil
	}
	proof, err := tlog.ProveTree(h.Size, earlier.Size, tlog.HashReaderFunc(read))
	if err != nil {
		return err
	}
	return tlog.CheckTree(proof, h.Size, h.Root, earlier.Size, earlier.Root)
}

// ParseHash parses a hash in base64.
func ParseHash(text string) (Hash, error) { return tlog.ParseHash(text) }

// Resume returns a Fold over the first size entries of a tree.
func Resume(size int64, read Read) (*Fold, error) {
	f := &Fold{size: size}
	var indexes []int64
	for level, remaining := 62, size; level >= 0; level-- {
		if bit := int64(1) << level; remaining&bit != 0 {
			indexes = append(indexes, tlog.StoredHashIndex(level, ((size>>level)-1)))
			remaining &^= bit
		}
	}
	if len(indexes) == 0 {
		return f, nil
	}
	var err error
	f.stack, err = read(indexes)
	return f, err
}

// Add appends an entry by its leaf hash and returns the hashes that are stored for the entry:
// the leaf hash and the roots of the subtrees that the entry completes. The first index is
// StoredAt(size before the call).
func (f *Fold) Add(leaf tlog.Hash) (stored []tlog.Hash) {
	stored = []tlog.Hash{leaf}
	for n := f.size; n&1 == 1; n >>= 1 {
		lastIndex := len(f.stack) - 1
		leaf = tlog.NodeHash(f.stack[lastIndex], leaf)
		f.stack = f.stack[:lastIndex]
		stored = append(stored, leaf)
	}
	f.stack = append(f.stack, leaf)
	f.size++
	return stored
}

// Size returns the number of entries.
func (f *Fold) Size() int64 { return f.size }

// Root returns the root hash. The root of the empty tree is the hash of no bytes.
func (f *Fold) Root() tlog.Hash {
	lastIndex := len(f.stack) - 1
	if lastIndex < 0 {
		return sha256.Sum256(nil)
	}
	root := f.stack[lastIndex]
	for i := lastIndex - 1; i >= 0; i-- {
		root = tlog.NodeHash(f.stack[i], root)
	}
	return root
}

// Subset is a statement about the entries of one subject in a tree: their number, and the root of
// a tree of only these entries, in their order. The first line of its signed form
// differs from that of a head, so that neither is accepted as the other.
type Subset struct {
	Subject string // for example "token/…"
	Tree    int64  // number of entries in the whole tree
	Head    Head   // Origin of the whole tree, Size and Root of the subset
}

// SignSubset returns the subset as a signed note of four lines: the origin, a slash and the
// subject; the size of the whole tree; the size of the subset; the root of the subset.
func SignSubset(s Subset, private string) (string, error) {
	return sign("subset", fmt.Sprintf("%s/%s\n%d\n%d\n%s\n", s.Head.Origin, s.Subject, s.Tree, s.Head.Size, s.Head.Root), private)
}

// OpenSubset verifies and reads the output of SignSubset. It returns an error unless the public key
// verifies the signature.
func OpenSubset(signed, public string) (s Subset, err error) {
	text, name, err := open("subset", signed, public)
	if err != nil {
		return s, err
	}
	firstLine, remaining, _ := strings.Cut(text, "\n")
	subject, ok := strings.CutPrefix(firstLine, name+"/")
	tree, remaining, found := strings.Cut(remaining, "\n")
	if !ok || !found || subject == "" {
		return s, fmt.Errorf("subset: %q is not a subject of %q", firstLine, name)
	}
	if s.Tree, err = parseSize(tree); err != nil {
		return Subset{}, err
	}
	s.Subject = subject
	s.Head, err = parseHead(name + "\n" + remaining)
	return s, err
}
