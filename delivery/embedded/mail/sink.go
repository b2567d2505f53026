// Package mail is used if no mail server is configured. It writes each mail to an .eml file
// (RFC 5322), which any mail reader opens, and removes the oldest files beyond its limits. It sends
// nothing, and marks its results as simulated.
package mail

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/durable"
	"github.com/penstock/penstock/delivery/email"
	"github.com/penstock/penstock/relay/outbox"
)

// Options configures a sink.
type Options struct {
	// From is the sender, "Name <a@b>" or an address; empty means penstock@localhost.
	From string
	// MaxMails and MaxBytes limit the stored mails; 0 means 10,000 and 100 MiB. The newest
	// mail is always kept.
	MaxMails int
	MaxBytes int64
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Sink writes mails to a directory. It is safe for concurrent use.
type Sink struct {
	dir      string
	sender   *mail.Address
	maxMails int
	maxBytes int64
	now      func() time.Time

	mu     sync.Mutex
	stored []storedMail // in the order in which they were written
	bytes  int64        // the size of all stored mails
}

type storedMail struct {
	name string
	size int64
}

// New returns a sink that writes to the directory "mail" below dataDir. It creates the
// directory, and removes the oldest mails beyond the limits. It returns an error if the
// sender is invalid or the directory cannot be used.
func New(dataDir string, opts Options) (*Sink, error) {
	opts.From = cmp.Or(opts.From, "Penstock <penstock@localhost>")
	if opts.Now == nil {
		opts.Now = time.Now
	}
	sender, err := mail.ParseAddress(opts.From)
	if err != nil {
		return nil, fmt.Errorf("mail sink: sender %q is not a valid address", opts.From)
	}
	dir := filepath.Join(dataDir, "mail")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("mail sink: %w", err)
	}
	s := &Sink{dir: dir, sender: sender, maxMails: cmp.Or(opts.MaxMails, 10_000), maxBytes: cmp.Or(opts.MaxBytes, 100<<20), now: opts.Now}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("mail sink: %w", err)
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), suffix) {
			files = append(files, info)
		}
	}
	slices.SortStableFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range files {
		s.stored = append(s.stored, storedMail{info.Name(), info.Size()})
		s.bytes += info.Size()
	}
	if err := s.removeOldest(); err != nil {
		return nil, fmt.Errorf("mail sink: %w", err)
	}
	return s, nil
}

// add records a mail that was written, and removes the oldest mails beyond the limits. An older
// mail that cannot be removed is not an error, because the new mail is on disk; the next call
// tries again.
func (s *Sink) add(name string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.stored, func(m storedMail) bool { return m.name == name }); i >= 0 { // a retry
		s.bytes -= s.stored[i].size
		s.stored = slices.Delete(s.stored, i, i+1)
	}
	s.stored = append(s.stored, storedMail{name, size})
	s.bytes += size
	_ = s.removeOldest()
}

// removeOldest removes the oldest mails until the remaining mails are within the limits. The
// caller holds mu, or is New.
func (s *Sink) removeOldest() error {
	for len(s.stored) > s.maxMails || s.bytes > s.maxBytes && len(s.stored) > 1 {
		oldest := s.stored[0]
		if err := os.Remove(filepath.Join(s.dir, oldest.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.bytes -= oldest.size
		s.stored = s.stored[1:]
	}
	return nil
}

// Dir returns the directory of the mails.
func (s *Sink) Dir() string { return s.dir }

// Send writes the mail and returns when it is on disk. The file is named after the
// Message-ID, so that a retry replaces the file of the previous attempt. Mails beyond the limits
// are removed, the oldest first.
//
// The error is delivery.Unsendable for a mail that cannot be composed, and
// delivery.OwnFault if the file cannot be written.
func (s *Sink) Send(ctx context.Context, m outbox.Mail) (email.Result, error) {
	if err := ctx.Err(); err != nil {
		return email.Result{}, err
	}
	raw, err := email.Compose(*s.sender, m, s.now())
	if err != nil {
		return email.Result{}, delivery.Unsendable(err)
	}
	name := fileName(m.MessageID)
	if err := durable.WriteFile(filepath.Join(s.dir, name), raw, 0o600); err != nil {
		return email.Result{}, delivery.OwnFault(fmt.Errorf("mail sink: %w", err))
	}
	s.add(name, int64(len(raw)))
	return email.Result{Status: 250, Response: "written to " + name, Simulated: true}, nil
}

const suffix = ".eml"

// fileName returns a safe file name. Unsafe characters are escaped, so that different
// ids have different names.
func fileName(id string) string {
	var b strings.Builder
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '@', c == '.' && b.Len() > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	name := b.String()
	if len(name) > 150 { // file systems allow 255
		name = fmt.Sprintf("%s-%x", name[:100], sha256.Sum256([]byte(id)))
	}
	return name + suffix
}
