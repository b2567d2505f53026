package checkpoints

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/ledger/merkle"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func at(name string) ledger.Place { return ledger.Place{Account: 1, Ledger: name} }

func TestTheLastHeadIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heads")
	j, err := Open(path, Options{})
	must(t, err)
	for _, one := range []struct{ name, head string }{{"a", "one\n"}, {"b", "one\n"}, {"a", "two\n"}, {"c", "one\n"}, {"c", ""}} {
		must(t, j.Keep(at(one.name), one.head))
	}
	must(t, j.Close())
	// A line that was being written when the power went was never kept.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(`{"account":1,"ledger":"b","checkpoint":"tw`)
	must(t, err)
	must(t, f.Close())
	for range 2 {
		j, err = Open(path, Options{})
		must(t, err)
		if len(j.All()) != 2 || j.Last(at("a")) != "two\n" || j.Last(at("b")) != "one\n" || j.Last(at("c")) != "" {
			t.Errorf("%v", j.All())
		}
		must(t, j.Keep(at("b"), "one\n"))
		must(t, j.Close())
	}
	must(t, os.WriteFile(path, []byte("{\n"), 0o600))
	if _, err := Open(path, Options{}); err == nil {
		t.Error("a journal that cannot be read passes for an empty one")
	}
}

func TestTheJournalStaysSmall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heads")
	j, err := Open(path, Options{})
	must(t, err)
	defer j.Close()
	must(t, j.Keep(at("a"), "one\n"))
	j.lines = 1001 // as after so many heads
	must(t, j.Keep(at("a"), "one\n"))
	if j.lines != 2 {
		t.Errorf("%d lines", j.lines)
	}
	// A line that could not be written whole is not in front of the next.
	must(t, j.file.Close())
	if err := j.Keep(at("a"), "two\n"); err == nil || j.Last(at("a")) != "one\n" {
		t.Errorf("%v, kept %q", err, j.Last(at("a")))
	}
	must(t, j.Keep(at("a"), "two\n"))
	if last, err := Read(path); err != nil || last[at("a")] != "two\n" {
		t.Errorf("%v, %v", last, err)
	}
}

func TestHeadsArePublished(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(filepath.Join(dir, "heads"), Options{PublishDir: filepath.Join(dir, "public")})
	must(t, err)
	hash := strings.Repeat("0a", 32)
	for _, head := range []string{"1\n", "2\n"} {
		must(t, j.Keep(at("a"), merkle.Origin(hash)+"\n"+head))
	}
	if text, err := os.ReadFile(filepath.Join(dir, "public", hash, "checkpoint")); err != nil || string(text) != merkle.Origin(hash)+"\n2\n" {
		t.Errorf("%q, %v", text, err)
	}
	if err := j.Keep(at("a"), merkle.Origin("../../etc")+"\n1\n"); err == nil {
		t.Error("a hash leads elsewhere")
	}
	must(t, j.Close())
	j, err = Open(filepath.Join(dir, "heads"), Options{PublishDir: filepath.Join(dir, "other")})
	must(t, err)
	defer j.Close()
	if text, err := os.ReadFile(filepath.Join(dir, "other", hash, "checkpoint")); err != nil || string(text) != merkle.Origin(hash)+"\n2\n" {
		t.Errorf("in a new directory: %q, %v", text, err)
	}
}

// TestASecondProcessSpoilsNothing opens a journal again that a process has open,
// as a gateway does that is then refused.
func TestASecondProcessSpoilsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heads")
	first, err := Open(path, Options{})
	must(t, err)
	must(t, first.Keep(at("a"), "one\n"))
	second, err := Open(path, Options{})
	must(t, err)
	must(t, second.Close())
	must(t, first.Keep(at("a"), "two\n"))
	must(t, first.Close())
	if last, err := Read(path); err != nil || last[at("a")] != "two\n" {
		t.Errorf("%v, %v", last, err)
	}
}

// FuzzRead holds that no journal is read that would be lost when it is rewritten.
func FuzzRead(f *testing.F) {
	f.Add([]byte("{\"account\":1,\"ledger\":\"a\",\"checkpoint\":\"x\"}\n{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "heads")
		must(t, os.WriteFile(path, text, 0o600))
		before, err := Read(path)
		if err != nil {
			return
		}
		j, err := Open(path, Options{})
		must(t, err)
		must(t, j.Keep(ledger.Place{}, ""))
		delete(before, ledger.Place{})
		must(t, j.Close())
		after, err := Read(path)
		must(t, err)
		if len(after) != len(before) {
			t.Fatalf("%v becomes %v", before, after)
		}
	})
}
