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

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/ledger/merkle"
)

// Report is what a verification found.
type Report struct {
	Head    merkle.Head
	Key     string // the public key the head was verified with
	Pinned  bool   // whether the key came from elsewhere than what was verified
	Entries int64
	// Unsealed is how many entries the head does not cover yet.
	Unsealed int64
	// Faults are what is wrong, in order, a hundred at most; Count is how many.
	Faults []merkle.Fault
	Count  int
}

func (r *Report) fault(n int64, problem string) {
	r.Faults = append(r.Faults, merkle.Fault{Sequence: n, Problem: problem})
	r.Count++
}

// Verify checks a whole ledger as it is stored: every entry against its stored
// hash, the tree against its signed head, and against earlier heads, signed
// checkpoints that were kept elsewhere. It changes nothing.
func (s *Service) Verify(ctx context.Context, acct account.ID, ledgerID string, earlier ...string) (Report, error) {
	l, err := s.Ledger(ctx, acct, ledgerID)
	if err != nil {
		return Report{}, err
	}
	r := Report{Pinned: true}
	if r.Key, err = s.keyThere(ctx, acct, l); err != nil {
		return r, err
	}
	log, err := s.deps.Store.Log(ctx, acct, l.ID)
	if err != nil || log.Entries == 0 && log.Head == "" && r.Key == "" {
		return r, err
	}
	r.Unsealed = log.Entries - log.Sealed
	c := r.checker(log.Head, earlier)
	if c == nil {
		return r, nil
	}
	for from := int64(0); from < r.Head.Size; from += batch {
		to := min(from+batch, r.Head.Size)
		if err := s.verifyBatch(ctx, acct, l.ID, from, to, c); err != nil {
			return r, err
		}
	}
	r.finish(c)
	return r, nil
}

// keyThere returns the public key of a ledger; empty if it has none yet.
func (s *Service) keyThere(ctx context.Context, acct account.ID, l Ledger) (string, error) {
	_, err := s.deps.Store.Secret(ctx, acct, "signer "+l.ID)
	if relay.KindOf(err) == relay.KindNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return s.Key(ctx, acct, l.ID)
}

func (s *Service) verifyBatch(ctx context.Context, acct account.ID, id string, from, to int64, c *merkle.Checker) error {
	entries, err := s.deps.Store.Entries(ctx, acct, id, run(from, to))
	if err != nil {
		return err
	}
	first := merkle.StoredAt(from)
	hashes, err := s.deps.Store.Hashes(ctx, acct, id, run(first, merkle.StoredAt(to)))
	if err != nil {
		return err
	}
	for i, e := range entries {
		n := from + int64(i)
		c.Entry(e, hashes[merkle.StoredAt(n)-first:merkle.StoredAt(n+1)-first])
	}
	return nil
}

// checker opens the heads; nil if the head of the whole is not what was signed.
func (r *Report) checker(head string, earlier []string) *merkle.Checker {
	if !r.open(head, "the ledger has no head that its key has signed: ") {
		return nil
	}
	var before []merkle.Head
	for _, text := range earlier {
		h, err := merkle.Open(text, r.Key)
		if err != nil {
			r.fault(-1, "the earlier head is not one that the ledger's key has signed: "+err.Error())
			continue
		}
		before = append(before, h)
	}
	return merkle.NewChecker(r.Head, before...)
}

// open reads the signed head, or notes that it is none.
func (r *Report) open(signed, problem string) bool {
	var err error
	if r.Head, err = merkle.Open(signed, r.Key); err != nil {
		r.fault(-1, problem+err.Error())
	}
	return err == nil
}

func (r *Report) finish(c *merkle.Checker) {
	faults, count := c.Faults()
	r.Entries, r.Faults, r.Count = c.Size(), append(r.Faults, faults...), r.Count+count
}

// exportHead is the first line of an export.
type exportHead struct {
	Ledger string `json:"ledger"` // its hash
	Name   string `json:"name"`
	Key    string `json:"key"`
	Head   string `json:"head"`
}

// Export writes a whole ledger: a line of JSON with its hash, name, public key
// and signed head, then a line for each entry: its sequence, its hash in base64
// and its leaf, with blanks between.
//
// It returns NotFound if the account has no such ledger; nothing is written then.
func (s *Service) Export(ctx context.Context, acct account.ID, ledgerID string) (func(io.Writer) error, error) {
	l, err := s.Ledger(ctx, acct, ledgerID)
	if err != nil {
		return nil, err
	}
	h, err := s.headOf(ctx, acct, l)
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error { return s.export(ctx, w, acct, l, h) }, nil
}

func (s *Service) export(ctx context.Context, w io.Writer, acct account.ID, l Ledger, h History) error {
	if err := json.NewEncoder(w).Encode(exportHead{l.Hash, l.Name, h.Key, h.Signed}); err != nil {
		return err
	}
	for from := int64(0); from < h.Head.Size; from += batch {
		entries, err := s.deps.Store.Entries(ctx, acct, l.ID, run(from, min(from+batch, h.Head.Size)))
		if err != nil {
			return err
		}
		for i, e := range entries {
			if e == nil {
				return fmt.Errorf("ledger %s: entry %d is missing", l.ID, from+int64(i))
			}
			if _, err := fmt.Fprintf(w, "%d %s %s\n", from+int64(i), merkle.LeafHash(e), e); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxLine is how long a line of an export may be: an entry holds two objects.
const maxLine = 4 * maxMetadata

// VerifyExport checks an exported ledger by a public key; an empty one stands for
// the one it names itself, which only shows that it is whole. Earlier heads are
// as in Verify.
func VerifyExport(from io.Reader, key string, earlier ...string) (Report, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	var head exportHead
	if !lines.Scan() {
		return Report{}, errors.Join(errors.New("export: it is empty"), lines.Err())
	}
	if err := json.Unmarshal(lines.Bytes(), &head); err != nil || head.Head == "" {
		return Report{}, errors.New("export: the first line is not that of an export")
	}
	r := Report{Key: key, Pinned: key != ""}
	if key == "" {
		r.Key = head.Key
	}
	c := r.checker(head.Head, earlier)
	if c == nil {
		return r, nil
	}
	for lines.Scan() {
		r.line(c, lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		return r, fmt.Errorf("export: line %d: %w", c.Size()+2, err)
	}
	if c.Size() > r.Head.Size {
		r.fault(-1, fmt.Sprintf("there are %d entries, the signed head has %d", c.Size(), r.Head.Size))
	}
	r.finish(c)
	return r, nil
}

// line checks a line of an export. One that cannot be read is an entry that was
// changed; one whose number is higher than expected leaves some out.
func (r *Report) line(c *merkle.Checker, line []byte) {
	number, rest, _ := bytes.Cut(line, []byte(" "))
	hash, entry, _ := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		n = c.Size()
	}
	if n < c.Size() {
		r.fault(n, "stands out of order")
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
