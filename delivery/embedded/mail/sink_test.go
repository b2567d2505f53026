package mail

import (
	"context"
	"io"
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
	"github.com/penstock/penstock/relay/relaytest"
)

func newSink(t *testing.T) *Sink {
	t.Helper()
	noon := relaytest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	return relaytest.Must(New(t.TempDir(), Options{Now: noon.Now}))(t)
}

func files(t *testing.T, s *Sink) []string {
	t.Helper()
	var names []string
	for _, e := range relaytest.Must(os.ReadDir(s.Dir()))(t) {
		names = append(names, e.Name())
	}
	return names
}

func TestARetryReplacesTheFileOfAMail(t *testing.T) {
	s := newSink(t)
	for _, text := range []string{"first", "second"} {
		r := relaytest.Must(s.Send(t.Context(), outbox.Mail{To: "a@example.test", Subject: "SMS", Text: text, MessageID: "01h@penstock"}))(t)
		relaytest.Equal(t, "the result", r, email.Result{Status: 250, Response: "written to 01h@penstock.eml", Simulated: true})
	}
	relaytest.Equal(t, "the files", files(t, s), []string{"01h@penstock.eml"})
	f := relaytest.Must(os.Open(filepath.Join(s.Dir(), "01h@penstock.eml")))(t)
	defer f.Close()
	m := relaytest.Must(mail.ReadMessage(f))(t)
	relaytest.Equal(t, "Message-Id", m.Header.Get("Message-Id"), "<01h@penstock>")
	relaytest.Equal(t, "the body", string(relaytest.Must(io.ReadAll(m.Body))(t)), "second\r\n")
}

func TestConcurrentMailsAreSeparateFiles(t *testing.T) {
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
	relaytest.Equal(t, "the number of files", len(files(t, s)), 20)
}

func TestFileNamesAreUniqueAndStayInTheDirectory(t *testing.T) {
	for id, want := range map[string]string{
		"../etc/passwd": "_2e._2fetc_2fpasswd.eml",
		"a/b":           "a_2fb.eml",
		"a_2fb":         "a_5f2fb.eml",
		".hidden":       "_2ehidden.eml",
		"ü@b":           "_c3_bc@b.eml",
	} {
		relaytest.Equal(t, "the file name of "+id, fileName(id), want)
	}
	long := strings.Repeat("a", 260)
	if n := len(fileName(long)); n > 255 {
		t.Errorf("the file name has %d bytes, want at most 255", n)
	}
	if fileName(long+"b") == fileName(long+"c") {
		t.Error("two long ids have the same file name")
	}
}

func TestTheOldestMailsAreRemoved(t *testing.T) {
	const size = 4000 // of a mail without its header
	for name, c := range map[string]struct {
		opts Options
		text string
		want []string
	}{
		"more mails than MaxMails":    {Options{MaxMails: 2}, "short", []string{"a.eml", "c.eml"}},
		"more bytes than MaxBytes":    {Options{MaxBytes: 3 * size}, strings.Repeat("long\n", size/5), []string{"a.eml", "c.eml"}},
		"a mail larger than MaxBytes": {Options{MaxBytes: 1}, "short", []string{"a.eml"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := relaytest.Must(New(dir, c.opts))(t)
			for _, id := range []string{"a", "b", "c", "a"} { // the last one is a retry
				relaytest.Must(s.Send(t.Context(), outbox.Mail{To: "a@example.test", Text: c.text, MessageID: id}))(t)
			}
			relaytest.Equal(t, "the files", files(t, s), c.want)
		})
	}
}

func TestTheOldestMailsAreRemovedAtTheStart(t *testing.T) {
	dir := t.TempDir()
	s := relaytest.Must(New(dir, Options{}))(t)
	for i, id := range []string{"b", "c", "a"} {
		relaytest.Must(s.Send(t.Context(), outbox.Mail{To: "a@example.test", MessageID: id}))(t)
		written := time.Unix(1_700_000_000+int64(i), 0)
		relaytest.NoError(t, os.Chtimes(filepath.Join(s.Dir(), id+".eml"), written, written))
	}
	relaytest.NoError(t, os.WriteFile(filepath.Join(s.Dir(), "notes.txt"), nil, 0o600)) // not a mail
	s = relaytest.Must(New(dir, Options{MaxMails: 2}))(t)
	relaytest.Equal(t, "the files", files(t, s), []string{"a.eml", "c.eml", "notes.txt"})
	relaytest.Must(s.Send(t.Context(), outbox.Mail{To: "a@example.test", MessageID: "d"}))(t)
	relaytest.Equal(t, "the files after another mail", files(t, s), []string{"a.eml", "d.eml", "notes.txt"})
}

func TestErrorsAreClassified(t *testing.T) {
	good := outbox.Mail{To: "a@example.test", MessageID: "d1"}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	removed := newSink(t)
	relaytest.NoError(t, os.RemoveAll(removed.Dir()))
	for name, c := range map[string]struct {
		sink *Sink
		ctx  context.Context
		mail outbox.Mail
		want delivery.Class
	}{
		"no recipient":              {newSink(t), t.Context(), outbox.Mail{MessageID: "d1"}, delivery.Dead},
		"the directory was removed": {removed, t.Context(), good, delivery.Fault},
		"shutdown":                  {newSink(t), cancelled, good, delivery.Fault},
		"no error":                  {newSink(t), t.Context(), good, delivery.Delivered},
	} {
		r, err := c.sink.Send(c.ctx, c.mail)
		relaytest.Equal(t, name+": the class", delivery.ClassifyMail(r.Status, r.Response, err).Class, c.want)
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	relaytest.NoError(t, os.WriteFile(file, nil, 0o600))
	if _, err := New(file, Options{}); err == nil {
		t.Error("a file was accepted as the directory")
	}
	if _, err := New(t.TempDir(), Options{From: "nobody"}); err == nil {
		t.Error("a sender without an address was accepted")
	}
}
