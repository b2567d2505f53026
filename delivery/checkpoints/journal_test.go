package checkpoints

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/ledger/merkle"
	"github.com/penstock/penstock/relay/relaytest"
)

func place(name string) ledger.Place { return ledger.Place{Account: 1, Ledger: name} }

func TestTheLastHeadOfEachLedgerIsStored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heads")
	j := relaytest.Must(Open(path, ""))(t)
	for _, step := range []struct{ name, head string }{{"a", "one\n"}, {"b", "one\n"}, {"a", "two\n"}, {"c", "one\n"}, {"c", ""}} {
		relaytest.NoError(t, j.Keep(place(step.name), step.head))
	}
	relaytest.NoError(t, j.Close())
	// An incomplete line, as a power failure leaves it, is ignored.
	f := relaytest.Must(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))(t)
	relaytest.Must(f.WriteString(`{"account":1,"ledger":"b","checkpoint":"tw`))(t)
	relaytest.NoError(t, f.Close())
	for range 2 {
		j = relaytest.Must(Open(path, ""))(t)
		relaytest.Equal(t, "the number of heads", len(j.All()), 2)
		got := map[string]string{"a": j.Last(place("a")), "b": j.Last(place("b")), "c": j.Last(place("c"))}
		relaytest.Equal(t, "the last heads", got, map[string]string{"a": "two\n", "b": "one\n", "c": ""})
		relaytest.NoError(t, j.Keep(place("b"), "one\n"))
		relaytest.NoError(t, j.Close())
	}
	relaytest.NoError(t, os.WriteFile(path, []byte("{\n"), 0o600))
	if _, err := Open(path, ""); err == nil {
		t.Error("a corrupt journal was opened")
	}
}

func TestTheJournalStaysSmall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heads")
	j := relaytest.Must(Open(path, ""))(t)
	defer j.Close()
	relaytest.NoError(t, j.Keep(place("a"), "one\n"))
	j.lines = 1001 // as if 1001 heads had been written
	relaytest.NoError(t, j.Keep(place("a"), "one\n"))
	relaytest.Equal(t, "the number of lines", j.lines, 2)
	// After a failed write, the next Keep rewrites the file.
	relaytest.NoError(t, j.file.Close())
	if err := j.Keep(place("a"), "two\n"); err == nil {
		t.Error("Keep returned no error for a closed file")
	}
	relaytest.Equal(t, "the head after a failed write", j.Last(place("a")), "one\n")
	relaytest.NoError(t, j.Keep(place("a"), "two\n"))
	relaytest.Equal(t, "the stored head", relaytest.Must(Read(path))(t)[place("a")], "two\n")
}

func TestHeadsArePublished(t *testing.T) {
	dir := t.TempDir()
	j := relaytest.Must(Open(filepath.Join(dir, "heads"), filepath.Join(dir, "public")))(t)
	hash := strings.Repeat("0a", 32)
	for _, head := range []string{"1\n", "2\n"} {
		relaytest.NoError(t, j.Keep(place("a"), merkle.Origin(hash)+"\n"+head))
	}
	published := func(name string) string {
		return string(relaytest.Must(os.ReadFile(filepath.Join(dir, name, hash, "checkpoint")))(t))
	}
	relaytest.Equal(t, "the published head", published("public"), merkle.Origin(hash)+"\n2\n")
	if err := j.Keep(place("a"), merkle.Origin("../../etc")+"\n1\n"); err == nil {
		t.Error("a head was published outside the directory")
	}
	relaytest.NoError(t, j.Close())
	j = relaytest.Must(Open(filepath.Join(dir, "heads"), filepath.Join(dir, "other")))(t)
	defer j.Close()
	relaytest.Equal(t, "the head published in another directory", published("other"), merkle.Origin(hash)+"\n2\n")
}

// A second gateway opens the journal of a running gateway before it exits.
func TestASecondProcessLeavesTheJournalIntact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heads")
	j1 := relaytest.Must(Open(path, ""))(t)
	relaytest.NoError(t, j1.Keep(place("a"), "one\n"))
	j2 := relaytest.Must(Open(path, ""))(t)
	relaytest.NoError(t, j2.Close())
	relaytest.NoError(t, j1.Keep(place("a"), "two\n"))
	relaytest.NoError(t, j1.Close())
	relaytest.Equal(t, "the stored head", relaytest.Must(Read(path))(t)[place("a")], "two\n")
}

// FuzzRead checks that a journal that can be read loses nothing when it is rewritten.
func FuzzRead(f *testing.F) {
	f.Add([]byte("{\"account\":1,\"ledger\":\"a\",\"checkpoint\":\"x\"}\n{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "heads")
		relaytest.NoError(t, os.WriteFile(path, text, 0o600))
		heads, err := Read(path)
		if err != nil {
			return
		}
		j := relaytest.Must(Open(path, ""))(t)
		relaytest.NoError(t, j.Keep(ledger.Place{}, ""))
		delete(heads, ledger.Place{})
		relaytest.NoError(t, j.Close())
		rewritten := relaytest.Must(Read(path))(t)
		if len(rewritten) != len(heads) {
			t.Fatalf("the heads %v became %v after a rewrite", heads, rewritten)
		}
	})
}
