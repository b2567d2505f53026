// Package mail replaces the mail server of an installation without one: it writes each
// mail to an .eml file (RFC 5322), which any mail reader opens. It sends nothing, and
// marks its results as simulated.
package mail

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/durable"
	"github.com/penstock/penstock/delivery/email"
	"github.com/penstock/penstock/relay/outbox"
)

// Options tune a sink.
type Options struct {
	// From is the sender, "Name <a@b>" or an address; empty means penstock@localhost.
	From string
	// Now is the clock; nil means time.Now.
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
	opts.From = cmp.Or(opts.From, "Penstock <penstock@localhost>")
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

// Dir returns the directory of the mails.
func (s *Sink) Dir() string { return s.dir }

// Send writes the mail and returns once it is on disk. The file is named after the
// Message-ID, so that a retry replaces the file of the previous attempt. The names sort
// by time, because our identifiers begin with it.
//
// The error is delivery.Unsendable for a mail that cannot be composed, and
// delivery.OwnFault if the file cannot be written.
func (s *Sink) Send(ctx context.Context, m outbox.Mail) (email.Result, error) {
	if err := ctx.Err(); err != nil {
		return email.Result{}, err
	}
	raw, err := email.Compose(*s.from, m, s.now())
	if err != nil {
		return email.Result{}, delivery.Unsendable(err)
	}
	name := fileName(m.MessageID)
	if err := durable.WriteFile(filepath.Join(s.dir, name), raw, 0o600); err != nil {
		return email.Result{}, delivery.OwnFault(fmt.Errorf("mail sink: %w", err))
	}
	return email.Result{Status: 250, Response: "written to " + name, Simulated: true}, nil
}

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
	return name + ".eml"
}
