// Package mail is the mail server of an installation that has none: a sink that
// writes every mail as an .eml file (RFC 5322), to be opened with any mail
// reader. Nothing leaves the machine, and each result says it is simulated.
package mail

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/email"
	"github.com/penstock/penstock/relay/outbox"
)

// Options tune a sink.
type Options struct {
	// From is the sender, "Name <a@b>" or an address; penstock@localhost.
	From string
	// Now replaces the clock.
	Now func() time.Time
}

// Sink writes mails to a directory. It is safe for concurrent use.
type Sink struct {
	dir  string
	from *mail.Address
	now  func() time.Time
}

// New makes a sink that writes to the directory "mail" below dataDir, which it
// creates. It returns an error if it cannot, or if the sender is not valid.
func New(dataDir string, opts Options) (*Sink, error) {
	if opts.From == "" {
		opts.From = "Penstock <penstock@localhost>"
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	from, err := mail.ParseAddress(opts.From)
	if err != nil {
		return nil, fmt.Errorf("mail sink: sender %q is not a valid address", opts.From)
	}
	dir := filepath.Join(dataDir, "mail")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("mail sink: %w", err)
	}
	return &Sink{dir: dir, from: from, now: opts.Now}, nil
}

// Dir is where the mails are.
func (s *Sink) Dir() string { return s.dir }

// Send writes the mail and answers once it is on disk. The file is named after
// the Message-ID alone, so that a retry replaces the file of the attempt
// before; as our identifiers begin with their time, the names sort by it.
//
// A mail that cannot be composed is marked delivery.Unsendable, a disk that
// cannot be written delivery.OwnFault.
func (s *Sink) Send(ctx context.Context, m outbox.Mail) (email.Result, error) {
	if err := ctx.Err(); err != nil {
		return email.Result{}, err
	}
	raw, err := email.Compose(*s.from, m, s.now())
	if err != nil {
		return email.Result{}, delivery.Unsendable(err)
	}
	name := fileName(m.MessageID)
	if err := s.write(name, raw); err != nil {
		return email.Result{}, delivery.OwnFault(fmt.Errorf("mail sink: %w", err))
	}
	return email.Result{Status: 250, Response: "written to " + name, Simulated: true}, nil
}

// fileName keeps what is safe in a name. Of two ids that differ only in other
// characters the escapes differ.
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
	return name + ".eml"
}

// write puts the file in place in one step: after a crash it is there whole or
// not at all.
func (s *Sink) write(name string, raw []byte) (err error) {
	f, err := os.CreateTemp(s.dir, ".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), filepath.Join(s.dir, name)); err != nil {
		return err
	}
	return syncDir(s.dir)
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
