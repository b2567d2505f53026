package merkle

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/penstock/penstock/relay/relaytest"
)

// tree is the log of a ledger in memory.
type tree struct {
	entries [][]byte
	hashes  []tlog.Hash
	private string
	public  string
}

func newTree(t testing.TB, n int) *tree {
	t.Helper()
	tr := &tree{}
	var err error
	if tr.private, tr.public, err = NewKey(Origin("abc")); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		tr.entries = append(tr.entries, fmt.Appendf(nil, `{"at":"2026-03-01T12:00:00.%06dZ","data":{"token":"%064x"},"type":"claimed"}`, i, i))
	}
	var f Fold
	for _, e := range tr.entries {
		tr.hashes = append(tr.hashes, f.Add(tlog.RecordHash(e))...)
	}
	return tr
}

func (tr *tree) read() tlog.HashReaderFunc {
	return func(indexes []int64) ([]tlog.Hash, error) {
		var hashes []tlog.Hash
		for _, i := range indexes {
			hashes = append(hashes, tr.hashes[i])
		}
		return hashes, nil
	}
}

func (tr *tree) head(t testing.TB, n int) Head {
	t.Helper()
	root, err := tlog.TreeHash(int64(n), tr.read())
	relaytest.NoError(t, err)
	return Head{Origin: Origin("abc"), Size: int64(n), Root: root}
}

// stored returns the hashes that are stored with entry n.
func (tr *tree) stored(n int) []tlog.Hash {
	return tr.hashes[tlog.StoredHashCount(int64(n)):tlog.StoredHashCount(int64(n)+1)]
}

func TestFoldComputesTheRootsOfTheTree(t *testing.T) {
	tr := newTree(t, 130)
	var f Fold
	for i, e := range tr.entries {
		if f.Root() != tr.head(t, i).Root {
			t.Fatalf("root of %d entries = %v, want %v", i, f.Root(), tr.head(t, i).Root)
		}
		want, err := tlog.StoredHashes(int64(i), e, tr.read())
		relaytest.NoError(t, err)
		if got := f.Add(tlog.RecordHash(e)); !slices.Equal(got, want) {
			t.Fatalf("hashes stored with entry %d = %v, want %v", i, got, want)
		}
		resumed, err := Resume(int64(i)+1, Read(tr.read()))
		relaytest.NoError(t, err)
		if resumed.Root() != f.Root() || resumed.Size() != f.Size() {
			t.Fatalf("resumed after %d entries: root %v of %d, want %v of %d", i+1, resumed.Root(), resumed.Size(), f.Root(), f.Size())
		}
	}
}

func TestAHeadOpensWithItsKeyOnly(t *testing.T) {
	tr := newTree(t, 5)
	h := tr.head(t, 5)
	signed, err := Sign(h, tr.private)
	relaytest.NoError(t, err)
	got, err := Open(signed, tr.public)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the opened head", got, h)
	for range 100 { // some keys contain the separator of their parts
		private, public, _ := NewKey(Origin("abc"))
		if got, err := PublicOf(private); err != nil || got != public {
			t.Fatalf("PublicOf(%s) = %s, error %v; want %s", private, got, err, public)
		}
	}
	_, otherKey, _ := NewKey(Origin("abc"))
	_, otherLedgerKey, _ := NewKey(Origin("other"))
	otherLedgerHead, _ := Sign(Head{Origin: "another", Size: 1}, tr.private)
	for name, tc := range map[string][2]string{
		"changed size":              {strings.Replace(signed, "\n5\n", "\n4\n", 1), tr.public},
		"another key of the ledger": {signed, otherKey},
		"key of another ledger":     {signed, otherLedgerKey},
		"malformed key":             {signed, "key"},
		"missing signature":         {strings.SplitAfter(signed, "\n\n")[0], tr.public},
		"empty string":              {"", tr.public},
		"head of another ledger":    {otherLedgerHead, tr.public},
		"changed origin":            {"x" + signed, tr.public},
	} {
		if _, err := Open(tc[0], tc[1]); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
	if _, err := Sign(h, "no key"); err == nil {
		t.Error("Sign accepted a malformed key")
	}
}

func TestFaultsOfATamperedLedgerAreReported(t *testing.T) {
	const n = 37
	for _, tc := range []struct {
		name   string
		tamper func(tr *tree, entries [][]byte) [][]byte
		want   []string
	}{
		{"unchanged", func(_ *tree, e [][]byte) [][]byte { return e }, nil},
		{"changed byte", func(_ *tree, e [][]byte) [][]byte { e[17][3] ^= 1; return e }, []string{"entry 17 was changed"}},
		{"two changed entries", func(_ *tree, e [][]byte) [][]byte { e[0], e[36] = []byte("x"), []byte("y"); return e }, []string{"entry 0 was changed", "entry 36 was changed"}},
		{"missing entry", func(_ *tree, e [][]byte) [][]byte { e[9] = nil; return e }, []string{"entry 9 is missing"}},
		{"missing last entry", func(_ *tree, e [][]byte) [][]byte { return e[:36] }, []string{"entries 36 to 36 are missing: the signed head has 37 entries"}},
		{"swapped entries", func(_ *tree, e [][]byte) [][]byte { e[4], e[20] = e[20], e[4]; return e },
			[]string{"entry 4 was moved: entry 20 is in its place", "entry 20 was moved: entry 4 is in its place"}},
		{"changed subtree hash", func(tr *tree, e [][]byte) [][]byte { tr.stored(3)[2][0] ^= 1; return e }, []string{"entry 3 completes a subtree of 4 entries whose stored hash was changed"}},
		{"changed entry with matching hashes", func(tr *tree, e [][]byte) [][]byte {
			e[17] = []byte("forged")
			var f Fold
			tr.hashes = nil
			for _, b := range e {
				tr.hashes = append(tr.hashes, f.Add(tlog.RecordHash(b))...)
			}
			return e
		}, []string{"the first 37 entries do not match the signed head"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := newTree(t, n)
			c := NewChecker(tr.head(t, n), tr.head(t, 8))
			entries := tc.tamper(tr, tr.entries)
			for i, e := range entries {
				c.Entry(e, tr.stored(i))
			}
			var got []string
			faults, count := c.Faults()
			for _, f := range faults {
				got = append(got, f.String())
			}
			if !slices.Equal(got, tc.want) || count != len(tc.want) {
				t.Errorf("got %d faults: %q, want %q", count, got, tc.want)
			}
		})
	}
}

func TestAProofHoldsForItsEntryOnly(t *testing.T) {
	tr := newTree(t, 21)
	h := tr.head(t, 21)
	for i, e := range tr.entries {
		proof, err := Prove(21, int64(i), Read(tr.read()))
		relaytest.NoError(t, err)
		if err := CheckProof(proof, h, int64(i), e); err != nil {
			t.Errorf("entry %d: %v", i, err)
		}
		if CheckProof(proof, h, int64(i), append(slices.Clone(e), ' ')) == nil || CheckProof(proof, h, int64(i+1)%21, e) == nil {
			t.Errorf("entry %d: the proof holds for a changed or another entry", i)
		}
	}
}

func TestARewrittenPastContradictsAnEarlierHead(t *testing.T) {
	original, rewritten := newTree(t, 20), newTree(t, 20)
	rewritten.entries[3] = []byte("rewritten")
	rewritten.hashes = nil
	var f Fold
	for _, e := range rewritten.entries {
		rewritten.hashes = append(rewritten.hashes, f.Add(tlog.RecordHash(e))...)
	}
	c := NewChecker(rewritten.head(t, 20), original.head(t, 10))
	for i, e := range rewritten.entries {
		c.Entry(e, rewritten.stored(i))
	}
	if faults, _ := c.Faults(); len(faults) != 1 || !strings.Contains(faults[0].Problem, "first 10 entries") {
		t.Errorf("faults = %v, want one about the first 10 entries", faults)
	}
}

func TestFaultsBeyondTheLimitAreCounted(t *testing.T) {
	tr := newTree(t, 300)
	c := NewChecker(tr.head(t, 300))
	for i := range tr.entries {
		c.Entry(nil, tr.stored(i))
	}
	if faults, count := c.Faults(); len(faults) != MaxFaults || count != 300 {
		t.Errorf("got %d faults and count %d, want %d and 300", len(faults), count, MaxFaults)
	}
}

// FuzzOpen checks that Open accepts only the signed head.
func FuzzOpen(f *testing.F) {
	tr := newTree(f, 3)
	signed, _ := Sign(tr.head(f, 3), tr.private)
	f.Add(signed)
	f.Add("penstock/ledger/abc\n3\n\n\n— x y\n")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := Open(text, tr.public)
		if err == nil && h != tr.head(t, 3) {
			t.Fatalf("Open(%q) = %+v, which was not signed", text, h)
		}
	})
}

func TestALargeLedgerVerifies(t *testing.T) {
	tr := newTree(t, 100_000)
	if n := verify(tr, tr.head(t, 100_000)); n != 0 {
		t.Errorf("got %d faults, want 0", n)
	}
}

// verify returns the number of faults.
func verify(tr *tree, head Head) int {
	c := NewChecker(head)
	start := 0
	for i, e := range tr.entries {
		end := int(tlog.StoredHashCount(int64(i) + 1))
		c.Entry(e, tr.hashes[start:end])
		start = end
	}
	_, count := c.Faults()
	return count
}

// BenchmarkVerify alternates between verifying 100,000 entries and hashing their bytes. The
// metric of-sha256 is the speed of verification relative to that of hashing.
func BenchmarkVerify(b *testing.B) {
	tr := newTree(b, 100_000)
	head := tr.head(b, 100_000)
	var hashing, verifying time.Duration
	for b.Loop() {
		began := time.Now()
		for _, e := range tr.entries {
			sum := sha256.Sum256(e)
			_ = sum
		}
		hashing += time.Since(began)
		began = time.Now()
		verify(tr, head)
		verifying += time.Since(began)
	}
	b.ReportMetric(float64(hashing)/float64(verifying), "of-sha256")
}

func TestATreeExtendsItsEarlierHeads(t *testing.T) {
	tr := newTree(t, 20)
	for size := range 21 {
		for _, newSize := range []int{20, 13} {
			err := CheckExtends(tr.head(t, newSize), tr.head(t, size), Read(tr.read()))
			if (err == nil) != (size <= newSize) {
				t.Errorf("CheckExtends from %d to %d entries: error %v", size, newSize, err)
			}
		}
	}
	otherHead := tr.head(t, 7)
	otherHead.Root[0]++
	if CheckExtends(tr.head(t, 20), otherHead, Read(tr.read())) == nil || CheckExtends(tr.head(t, 7), otherHead, Read(tr.read())) == nil {
		t.Error("CheckExtends accepted the head of another tree")
	}
	last, first := tr.head(t, 20), tr.head(t, 1)
	tr.hashes[1][0]++
	if CheckExtends(last, first, Read(tr.read())) == nil {
		t.Error("CheckExtends accepted a changed tree")
	}
}

func TestSubsetsAndHeadsAreDistinct(t *testing.T) {
	tr := newTree(t, 3)
	want := Subset{Subject: "token/ab", Tree: 9, Head: tr.head(t, 3)}
	signed, err := SignSubset(want, tr.private)
	relaytest.NoError(t, err)
	got, err := OpenSubset(signed, tr.public)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the opened subset", got, want)
	head, err := Sign(tr.head(t, 3), tr.private)
	relaytest.NoError(t, err)
	if _, err := OpenSubset(head, tr.public); err == nil {
		t.Error("a head was opened as a subset")
	}
	if _, err := Open(signed, tr.public); err == nil {
		t.Error("a subset was opened as a head")
	}
	_, otherKey, _ := NewKey(Origin("abc"))
	for name, tc := range map[string][2]string{
		"another key":     {signed, otherKey},
		"changed subject": {strings.Replace(signed, "token/ab", "token/ac", 1), tr.public},
		"changed size":    {strings.Replace(signed, "\n9\n", "\n8\n", 1), tr.public},
		"empty string":    {"", tr.public},
	} {
		if _, err := OpenSubset(tc[0], tc[1]); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
}

func TestSignNamedSignsTheName(t *testing.T) {
	private, public, err := NewKey(Origin("aa"))
	relaytest.NoError(t, err)
	head := Head{Origin: Origin("aa"), Size: 1, Root: LeafHash([]byte("x"))}
	for _, name := range []string{"Assets", "", "a\n\nb \"c\" é"} {
		signed, err := SignNamed(head, name, private)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the head", relaytest.Must(Open(signed, public))(t), head)
		relaytest.Equal(t, "the name", NameOf(signed), name)
	}
	signed, err := Sign(head, private)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the name of an unnamed head", NameOf(signed), "")
	if _, err := Sign(Head{Origin: Origin("bb")}, private); err == nil {
		t.Error("Sign accepted the key of another ledger")
	}
}
