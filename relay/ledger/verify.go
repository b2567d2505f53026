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
	Key     string // the public key the head was verified with
	Pinned  bool   // whether the key came from elsewhere than what was verified
	Entries int64
	// Scope says of what these are all there are, none is missing in it.
	Scope string
	// Unsealed is the number of entries that the head does not cover yet.
	Unsealed int64
	// Faults are the first hundred faults, in order; Count is the number of all.
	Faults []merkle.Fault
	Count  int
}

const maxFaults = 100

func (r *Report) fault(n int64, problem string) {
	if r.Count++; len(r.Faults) < maxFaults {
		r.Faults = append(r.Faults, merkle.Fault{Sequence: n, Problem: problem})
	}
}

// Verify checks a whole ledger as it is stored: every entry against its stored
// hash, the tree against its signed head, and against earlier heads, signed
// checkpoints that were kept elsewhere, among them the last one that this gateway
// kept. If the log is whole, what the tokens do is computed from it and compared
// with what is stored of them. It changes nothing.
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
	r.Unsealed = log.Entries - log.Signed

	// 1. Check the key, the sealed head, the number of entries and the signature of the head.
	r.Key, err = s.keyThere(ctx, p)
	switch {
	case corrupt(err):
		r.fault(-1, "the key that signs the heads does not open: "+err.Error())
	case err != nil:
		return r, err
	default:
		wrong, err := s.wrongSeal(ctx, p, log, lastHead)
		if wrong != "" && log.Head != "" {
			r.fault(-1, wrong)
		}
		if head, bad := merkle.Open(log.Head, r.Key); bad == nil && (head.Size != log.Signed || log.Entries < log.Signed) {
			r.fault(-1, fmt.Sprintf("the log has %d entries, %d of them sealed, and its signed head has %d", log.Entries, log.Signed, head.Size))
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
	for start := int64(0); start < r.Head.Size; start += batch {
		end := min(start+batch, r.Head.Size)
		entries, err := s.deps.Store.Entries(ctx, acct, l.ID, run(start, end))
		if err != nil {
			return r, err
		}
		index := merkle.StoredAt(start)
		hashes, err := s.deps.Store.Hashes(ctx, acct, l.ID, run(index, merkle.StoredAt(end)))
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

// checker opens the heads; nil if the latest head is not signed by the key.
func (r *Report) checker(head string, earlier []string) *merkle.Checker {
	if !r.open(head, "the ledger has no head that its key has signed: ") {
		return nil
	}
	return merkle.NewChecker(r.Head, r.earlier(earlier)...)
}

// earlier opens signed heads that were kept elsewhere.
func (r *Report) earlier(signed []string) (heads []merkle.Head) {
	for _, text := range signed {
		h, err := merkle.Open(text, r.Key)
		if err != nil {
			r.fault(-1, "the earlier head is not one that the ledger's key has signed: "+err.Error())
			continue
		}
		heads = append(heads, h)
	}
	return heads
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
	r.Scope = scopeOf(r.Entries)
}

func scopeOf(entries int64) string {
	if entries == 0 {
		return "the whole ledger, which has none yet"
	}
	return fmt.Sprintf("the whole ledger from 0 to %d", entries-1)
}

// exportHead is the first line of an export.
type exportHead struct {
	Ledger string `json:"ledger"` // its hash
	Name   string `json:"name"`
	Key    string `json:"key"`
	Head   string `json:"head"` // a checkpoint with the ledger's name
}

// wrong describes how a first line differs from what its signed head, which the key has
// signed, says; empty if it does not.
func (e exportHead) wrong(line []byte, key string) string {
	origin, _, _ := strings.Cut(e.Head, "\n")
	want := exportHead{strings.TrimPrefix(origin, merkle.Origin("")), merkle.NameOf(e.Head), strings.TrimSpace(key), e.Head}
	switch {
	case e.Ledger != want.Ledger:
		return "the header has another ledger than the one that is signed, " + want.Ledger
	case e.Name != want.Name:
		return fmt.Sprintf("the header has another name than the one that is signed, %q", want.Name)
	case e.Key != want.Key:
		return "the header has another key than the one that signed its head"
	}
	if b, err := json.Marshal(want); err != nil || !bytes.Equal(b, line) {
		return "the header was changed: it is not the line that an export begins with"
	}
	return ""
}

// Export writes a whole ledger: a line of JSON with its hash, name, public key and signed
// head, which has the hash and the name too, then a line for each entry: its sequence, its
// hash in base64 and its leaf, with blanks between.
//
// It returns NotFound if the account has no such ledger; nothing is written then.
func (s *Service) Export(ctx context.Context, acct relay.AccountID, ledgerID string) (func(io.Writer) error, error) {
	l, err := s.Ledger(ctx, acct, ledgerID)
	if err != nil {
		return nil, err
	}
	h, err := s.headOf(ctx, acct, l)
	if err != nil {
		return nil, err
	}
	private, err := s.signer(ctx, acct, l)
	if err != nil {
		return nil, err
	}
	if h.Signed, err = merkle.SignNamed(h.Head, l.Name, private); err != nil {
		return nil, err
	}
	return func(w io.Writer) error {
		if err := json.NewEncoder(w).Encode(exportHead{l.Hash, l.Name, h.Key, h.Signed}); err != nil {
			return err
		}
		for start := int64(0); start < h.Head.Size; start += batch {
			entries, err := s.deps.Store.Entries(ctx, acct, l.ID, run(start, min(start+batch, h.Head.Size)))
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

// maxLine is the largest length of a line of an export: an entry holds two objects.
const maxLine = 4 * maxMetadata

// VerifyExport checks an exported ledger by a public key; an empty one stands for
// the one it names itself, which only shows that it is whole. Earlier heads are
// as in Verify.
func VerifyExport(src io.Reader, key string, earlier ...string) (Report, error) {
	lines := bufio.NewScanner(src)
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
	if wrong := head.wrong(lines.Bytes(), r.Key); wrong != "" {
		r.fault(-1, wrong)
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
	number, entry, _ := bytes.Cut(line, []byte(" "))
	hash, entry, _ := bytes.Cut(entry, []byte(" "))
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
