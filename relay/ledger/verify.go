package ledger

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/ledger/merkle"
)

// Report is the result of a verification.
type Report struct {
	Head    merkle.Head
	Key     string // the public key that verified the head
	Pinned  bool   // false if Key is only the key in the verified document
	Entries int64
	Scope   string // describes the range of the verified entries
	// Unsigned is the number of entries that the head does not cover yet.
	Unsigned int64
	Faults   []merkle.Fault // the first merkle.MaxFaults
	Count    int            // the number of all faults
}

func (r *Report) addFault(n int64, problem string) {
	if r.Count++; len(r.Faults) < merkle.MaxFaults {
		r.Faults = append(r.Faults, merkle.Fault{Sequence: n, Problem: problem})
	}
}

// Verify checks a stored ledger: every entry against its stored hash, and the tree against its
// signed head, the last head in Heads, and earlier signed heads that the caller has. If it
// finds no fault, it also compares the stored tokens with their entries. It changes nothing.
func (s *Service) Verify(ctx context.Context, acct relay.AccountID, ledgerID string, earlier ...string) (Report, error) {
	l, err := s.Ledger(ctx, acct, ledgerID)
	if err != nil {
		return Report{}, err
	}
	r, p := Report{Pinned: true, Scope: scopeOf(0)}, Place{acct, l.ID}
	lastHead := s.deps.Heads.Last(p)
	log, err := s.deps.Store.Log(ctx, acct, l.ID)
	if err != nil || log == (Log{}) && lastHead == "" && len(earlier) == 0 {
		return r, err
	}
	r.Unsigned = log.Entries - log.Signed

	// 1. Check the key, the sealed head, the number of entries and the signature of the head.
	r.Key, err = s.existingKey(ctx, p)
	switch {
	case corrupt(err):
		r.addFault(-1, "the key that signs the heads cannot be decrypted: "+err.Error())
	case err != nil:
		return r, err
	default:
		fault, err := s.sealFault(ctx, p, log, lastHead)
		if fault != "" && log.Head != "" {
			r.addFault(-1, fault)
		}
		if head, openErr := merkle.Open(log.Head, r.Key); openErr == nil && (head.Size != log.Signed || log.Entries < log.Signed) {
			r.addFault(-1, fmt.Sprintf("the log has %d entries, %d of them signed, and its signed head has %d", log.Entries, log.Signed, head.Size))
		}
		if err != nil {
			return r, err
		}
	}
	if lastHead != "" && lastHead != log.Head {
		earlier = append(earlier, lastHead)
	}
	c := r.checker(log.Head, earlier)
	if c == nil {
		return r, nil
	}

	// 2. Check every entry, and then the tokens.
	for start := int64(0); start < r.Head.Size; start += batchSize {
		end := min(start+batchSize, r.Head.Size)
		entries, err := s.deps.Store.Entries(ctx, acct, l.ID, numbersBetween(start, end))
		if err != nil {
			return r, err
		}
		index := merkle.StoredAt(start)
		hashes, err := s.deps.Store.Hashes(ctx, acct, l.ID, numbersBetween(index, merkle.StoredAt(end)))
		if err != nil {
			return r, err
		}
		for i, e := range entries {
			n := start + int64(i)
			c.Entry(e, hashes[merkle.StoredAt(n)-index:merkle.StoredAt(n+1)-index])
		}
	}
	r.finish(c)
	if r.Count > 0 {
		return r, nil
	}
	return r, s.verifyTokens(ctx, p, log.Entries, &r)
}

// checker returns a checker for the heads; nil if the key did not sign the latest head.
func (r *Report) checker(head string, earlier []string) *merkle.Checker {
	if !r.openHead(head, "the ledger's head is not signed by its key: ") {
		return nil
	}
	return merkle.NewChecker(r.Head, r.openEarlier(earlier)...)
}

// openEarlier opens earlier signed heads. It adds a fault for each head that the key did not sign.
func (r *Report) openEarlier(signed []string) (heads []merkle.Head) {
	for _, text := range signed {
		h, err := merkle.Open(text, r.Key)
		if err != nil {
			r.addFault(-1, "the earlier head is not signed by the ledger's key: "+err.Error())
			continue
		}
		heads = append(heads, h)
	}
	return heads
}

// openHead opens the signed head. If the key did not sign it, openHead adds a fault and returns
// false.
func (r *Report) openHead(signed, problem string) bool {
	var err error
	if r.Head, err = merkle.Open(signed, r.Key); err != nil {
		r.addFault(-1, problem+err.Error())
	}
	return err == nil
}

func (r *Report) finish(c *merkle.Checker) {
	faults, count := c.Faults()
	r.Entries, r.Faults, r.Count = c.Size(), append(r.Faults, faults...), r.Count+count
	r.Scope = scopeOf(r.Entries)
}

func scopeOf(entries int64) string {
	if entries == 0 {
		return "the whole ledger, which has no entries yet"
	}
	return fmt.Sprintf("the whole ledger, entries 0 to %d", entries-1)
}

// exportHead is the first line of an export.
type exportHead struct {
	Ledger string `json:"ledger"` // the hash of the ledger
	Name   string `json:"name"`
	Key    string `json:"key"`
	Head   string `json:"head"` // a checkpoint with the ledger's name
}

// fault describes the difference between the first line and its signed head; empty if there is
// none.
func (e exportHead) fault(line []byte, key string) string {
	origin, _, _ := strings.Cut(e.Head, "\n")
	want := exportHead{strings.TrimPrefix(origin, merkle.Origin("")), merkle.NameOf(e.Head), strings.TrimSpace(key), e.Head}
	switch {
	case e.Ledger != want.Ledger:
		return "the header does not have the signed ledger, " + want.Ledger
	case e.Name != want.Name:
		return fmt.Sprintf("the header does not have the signed name, %q", want.Name)
	case e.Key != want.Key:
		return "the header does not have the key that signed its head"
	}
	if b, err := json.Marshal(want); err != nil || !bytes.Equal(b, line) {
		return "the header was changed: it is not in the format of an export"
	}
	return ""
}

// Export returns a function that writes a whole ledger: first a line of JSON with the hash, the
// name, the public key and the signed head, which also has the hash and the name; then a line for
// each entry with the sequence, the hash in base64 and the leaf, separated by blanks.
//
// Export returns relay.KindNotFound if the account does not have the ledger.
func (s *Service) Export(ctx context.Context, acct relay.AccountID, ledgerID string) (func(io.Writer) error, error) {
	l, err := s.Ledger(ctx, acct, ledgerID)
	if err != nil {
		return nil, err
	}
	head, _, key, err := s.headOf(ctx, acct, l)
	if err != nil {
		return nil, err
	}
	private, err := s.signer(ctx, acct, l)
	if err != nil {
		return nil, err
	}
	signed, err := merkle.SignNamed(head, l.Name, private)
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error {
		if err := json.NewEncoder(w).Encode(exportHead{l.Hash, l.Name, key, signed}); err != nil {
			return err
		}
		for start := int64(0); start < head.Size; start += batchSize {
			entries, err := s.deps.Store.Entries(ctx, acct, l.ID, numbersBetween(start, min(start+batchSize, head.Size)))
			if err != nil {
				return err
			}
			for i, e := range entries {
				if e == nil {
					return fmt.Errorf("ledger %s: entry %d is missing", l.ID, start+int64(i))
				}
				if _, err := fmt.Fprintf(w, "%d %s %s\n", start+int64(i), merkle.LeafHash(e), e); err != nil {
					return err
				}
			}
		}
		return nil
	}, nil
}

// maxLineBytes is the largest length of a line of an export. An entry contains up to two objects of
// maxMetadata bytes.
const maxLineBytes = 4 * maxMetadata

// VerifyExport checks an exported ledger with a public key and earlier heads, as Verify does.
// Without a key it uses the key in the export, which only shows that the export is consistent.
func VerifyExport(src io.Reader, key string, earlier ...string) (Report, error) {
	lines := bufio.NewScanner(src)
	lines.Buffer(make([]byte, 0, 64<<10), maxLineBytes)
	var head exportHead
	if !lines.Scan() {
		return Report{}, errors.Join(errors.New("export: the file is empty"), lines.Err())
	}
	if err := json.Unmarshal(lines.Bytes(), &head); err != nil || head.Head == "" {
		return Report{}, errors.New("export: the first line is not the header of an export")
	}
	r := Report{Key: key, Pinned: key != ""}
	if key == "" {
		r.Key = head.Key
	}
	c := r.checker(head.Head, earlier)
	if c == nil {
		return r, nil
	}
	if fault := head.fault(lines.Bytes(), r.Key); fault != "" {
		r.addFault(-1, fault)
	}
	for lines.Scan() {
		r.checkLine(c, lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		return r, fmt.Errorf("export: line %d: %w", c.Size()+2, err)
	}
	if c.Size() > r.Head.Size {
		r.addFault(-1, fmt.Sprintf("there are %d entries, but the signed head has %d", c.Size(), r.Head.Size))
	}
	r.finish(c)
	return r, nil
}

// checkLine checks a line of an export. An unreadable line counts as a changed entry. A number that is
// higher than expected means that entries are missing.
func (r *Report) checkLine(c *merkle.Checker, line []byte) {
	number, entry, _ := bytes.Cut(line, []byte(" "))
	hash, entry, _ := bytes.Cut(entry, []byte(" "))
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		n = c.Size()
	}
	if n < c.Size() {
		r.addFault(n, "is out of order")
		return
	}
	for c.Size() < min(n, r.Head.Size) {
		c.Entry(nil, nil)
	}
	if entry == nil {
		entry = []byte{}
	}
	h, err := merkle.ParseHash(string(hash))
	if err != nil {
		h = merkle.Hash{}
	}
	c.Entry(entry, []merkle.Hash{h})
}
