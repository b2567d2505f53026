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

func at(name string) ledger.Place { return ledger.Place{Account: 1, Ledger: name} }

func TestTheLastHeadIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heads")
	j := relaytest.Must(Open(path, ""))(t)
	for _, one := range []struct{ name, head string }{{"a", "one\n"}, {"b", "one\n"}, {"a", "two\n"}, {"c", "one\n"}, {"c", ""}} {
		relaytest.NoError(t, j.Keep(at(one.name), one.head))
	}
	relaytest.NoError(t, j.Close())
	// An incomplete line, as a power failure leaves it, is ignored.
	f := relaytest.Must(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))(t)
	relaytest.Must(f.WriteString(`{"account":1,"ledger":"b","checkpoint":"tw`))(t)
	relaytest.NoError(t, f.Close())
	for range 2 {
		j = relaytest.Must(Open(path, ""))(t)
		relaytest.Equal(t, "the number of heads", len(j.All()), 2)
		last := map[string]string{"a": j.Last(at("a")), "b": j.Last(at("b")), "c": j.Last(at("c"))}
		relaytest.Equal(t, "the last heads", last, map[string]string{"a": "two\n", "b": "one\n", "c": ""})
		relaytest.NoError(t, j.Keep(at("b"), "one\n"))
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
	relaytest.NoError(t, j.Keep(at("a"), "one\n"))
	j.lines = 1001 // as after a thousand heads
	relaytest.NoError(t, j.Keep(at("a"), "one\n"))
	relaytest.Equal(t, "the number of lines", j.lines, 2)
	// A line that was written in part is removed before the next.
	relaytest.NoError(t, j.file.Close())
	if err := j.Keep(at("a"), "two\n"); err == nil {
		t.Error("no error from a closed file")
	}
	relaytest.Equal(t, "the head after a failed write", j.Last(at("a")), "one\n")
	relaytest.NoError(t, j.Keep(at("a"), "two\n"))
	relaytest.Equal(t, "the stored head", relaytest.Must(Read(path))(t)[at("a")], "two\n")
}

func TestHeadsArePublished(t *testing.T) {
	dir := t.TempDir()
	j := relaytest.Must(Open(filepath.Join(dir, "heads"), filepath.Join(dir, "public")))(t)
	hash := strings.Repeat("0a", 32)
	for _, head := range []string{"1\n", "2\n"} {
		relaytest.NoError(t, j.Keep(at("a"), merkle.Origin(hash)+"\n"+head))
	}
	published := func(name string) string {
		return string(relaytest.Must(os.ReadFile(filepath.Join(dir, name, hash, "checkpoint")))(t))
	}
	relaytest.Equal(t, "the published head", published("public"), merkle.Origin(hash)+"\n2\n")
	if err := j.Keep(at("a"), merkle.Origin("../../etc")+"\n1\n"); err == nil {
		t.Error("a head was published outside the directory")
	}
	relaytest.NoError(t, j.Close())
	j = relaytest.Must(Open(filepath.Join(dir, "heads"), filepath.Join(dir, "other")))(t)
	defer j.Close()
	relaytest.Equal(t, "the head published in another directory", published("other"), merkle.Origin(hash)+"\n2\n")
}

// A second gateway opens the journal of a running one, before it is refused.
func TestASecondProcessLeavesTheJournalIntact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heads")
	first := relaytest.Must(Open(path, ""))(t)
	relaytest.NoError(t, first.Keep(at("a"), "one\n"))
	second := relaytest.Must(Open(path, ""))(t)
	relaytest.NoError(t, second.Close())
	relaytest.NoError(t, first.Keep(at("a"), "two\n"))
	relaytest.NoError(t, first.Close())
	relaytest.Equal(t, "the stored head", relaytest.Must(Read(path))(t)[at("a")], "two\n")
}

// FuzzRead checks that a journal that can be read loses nothing when it is rewritten.
func FuzzRead(f *testing.F) {
	f.Add([]byte("{\"account\":1,\"ledger\":\"a\",\"checkpoint\":\"x\"}\n{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "heads")
		relaytest.NoError(t, os.WriteFile(path, text, 0o600))
		before, err := Read(path)
		if err != nil {
			return
		}
		j := relaytest.Must(Open(path, ""))(t)
		relaytest.NoError(t, j.Keep(ledger.Place{}, ""))
		delete(before, ledger.Place{})
		relaytest.NoError(t, j.Close())
		after := relaytest.Must(Read(path))(t)
		if len(after) != len(before) {
			t.Fatalf("the heads %v became %v", before, after)
		}
	})
}
