package mail

import (
	"context"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/email"
	"github.com/penstock/penstock/relay/outbox"
)

func newSink(t *testing.T) *Sink {
	t.Helper()
	s, err := New(t.TempDir(), Options{Now: func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func files(t *testing.T, s *Sink) []string {
	t.Helper()
	entries, err := os.ReadDir(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestAMailIsAFileAndARetryReplacesIt(t *testing.T) {
	s := newSink(t)
	for _, text := range []string{"first", "second"} {
		r, err := s.Send(t.Context(), outbox.Mail{To: "a@example.test", Subject: "SMS", Text: text, MessageID: "01h@penstock"})
		if want := (email.Result{Status: 250, Response: "written to 01h@penstock.eml", Simulated: true}); err != nil || r != want {
			t.Fatalf("got %+v, %v", r, err)
		}
	}
	if names := files(t, s); len(names) != 1 {
		t.Fatalf("files %q, want one", names)
	}
	f, err := os.Open(filepath.Join(s.Dir(), "01h@penstock.eml"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := mail.ReadMessage(f)
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 20)
	n, _ := m.Body.Read(text)
	if m.Header.Get("Message-Id") != "<01h@penstock>" || string(text[:n]) != "second\r\n" {
		t.Errorf("got %v %q", m.Header, text[:n])
	}
}

func TestManyMailsAtOnceAreManyFiles(t *testing.T) {
	s := newSink(t)
	var wg sync.WaitGroup
	for _, id := range strings.Split("abcdefghijklmnopqrst", "") {
		wg.Go(func() {
			if _, err := s.Send(t.Context(), outbox.Mail{To: "a@example.test", MessageID: id}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(files(t, s)); n != 20 {
		t.Errorf("%d files, want 20", n)
	}
}

func TestFileNamesStayInTheDirectoryAndApart(t *testing.T) {
	for id, want := range map[string]string{
		"../etc/passwd": "_2e._2fetc_2fpasswd.eml",
		"a/b":           "a_2fb.eml",
		"a_2fb":         "a_5f2fb.eml",
		".hidden":       "_2ehidden.eml",
		"ü@b":           "_c3_bc@b.eml",
	} {
		if got := fileName(id); got != want {
			t.Errorf("%q: got %q, want %q", id, got, want)
		}
	}
	long := strings.Repeat("a", 260)
	if n := len(fileName(long)); n > 255 {
		t.Errorf("a name of %d bytes", n)
	}
	if fileName(long+"b") == fileName(long+"c") {
		t.Error("long ids share a file")
	}
}

func TestWhatGoesWrongIsJudged(t *testing.T) {
	good := outbox.Mail{To: "a@example.test", MessageID: "d1"}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	gone := newSink(t)
	if err := os.RemoveAll(gone.Dir()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		sink *Sink
		ctx  context.Context
		mail outbox.Mail
		want delivery.Class
	}{
		"no recipient":          {newSink(t), t.Context(), outbox.Mail{MessageID: "d1"}, delivery.Dead},
		"the directory is gone": {gone, t.Context(), good, delivery.Fault},
		"shutdown":              {newSink(t), cancelled, good, delivery.Fault},
		"nothing":               {newSink(t), t.Context(), good, delivery.Delivered},
	} {
		r, err := c.sink.Send(c.ctx, c.mail)
		if v := delivery.ClassifyMail(r.Status, r.Response, err); v.Class != c.want {
			t.Errorf("%s: got %+v (%v)", name, v, err)
		}
	}
}

func TestASinkThatCannotBeMadeIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(file, Options{}); err == nil {
		t.Error("accepted a file for a directory")
	}
	if _, err := New(t.TempDir(), Options{From: "nobody"}); err == nil {
		t.Error("accepted a sender without an address")
	}
}
