package email

import (
	"bytes"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"

	message "github.com/emersion/go-message/mail"

	"github.com/penstock/penstock/relay/outbox"
)

// maxField is the longest header value written, in bytes of UTF-8: a line may
// hold 998 (RFC 5322, section 2.1.1), and encoding can triple it.
const maxField = 300

// Compose returns the wire format of a mail (RFC 5322, RFC 2045): text in UTF-8,
// quoted-printable, header fields in a fixed order. Control characters in the subject or
// a further header's value become spaces, and runs of white space one space, so that a
// sender's name cannot add a header field. Text that looks like an encoded word is
// split, so that it is not decoded.
//
// It returns an error if the recipient, the message id or the name of a further
// header is not valid, or if Compose or the mail transport sets that header.
func Compose(sender mail.Address, m outbox.Mail, date time.Time) ([]byte, error) {
	mailbox, err := recipient(m.To)
	if err != nil {
		return nil, err
	}
	id, err := messageID(m.MessageID, sender.Address)
	if err != nil {
		return nil, err
	}
	// Fields are written in the reverse order of setting them. The further fields are sorted,
	// so that a retry writes the same bytes.
	var h message.Header
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(m.Header))) {
		if !isAllowed(name) {
			return nil, fmt.Errorf("mail: header %q is not allowed", name)
		}
		h.SetText(name, fieldText(m.Header[name]))
	}
	h.Set("Content-Transfer-Encoding", "quoted-printable")
	h.SetContentType("text/plain", map[string]string{"charset": "utf-8"})
	h.Set("MIME-Version", "1.0")
	h.SetMessageID(id)
	h.SetDate(date)
	h.SetSubject(fieldText(m.Subject))
	h.SetAddressList("To", []*message.Address{{Address: mailbox}})
	h.SetAddressList("From", []*message.Address{{Name: fieldText(sender.Name), Address: sender.Address}})
	var buf bytes.Buffer
	w, err := message.CreateSingleInlineWriter(&buf, h)
	if err != nil {
		return nil, fmt.Errorf("mail: header: %w", err)
	}
	if _, err := w.Write([]byte(bodyText(m.Text))); err != nil {
		return nil, fmt.Errorf("mail: text: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("mail: text: %w", err)
	}
	return buf.Bytes(), nil
}

// bodyText returns the text with LF as its only line break, which the encoder writes as CRLF,
// and with a line break at the end.
func bodyText(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// recipient returns the address in text, which may also have a display name.
func recipient(text string) (string, error) {
	a, err := mail.ParseAddress(text)
	if err != nil || strings.ContainsFunc(a.Address, unicode.IsControl) || strings.ContainsAny(a.Address, "<> ") {
		return "", fmt.Errorf("mail: recipient is not a valid address")
	}
	return a.Address, nil
}

// messageID adds the sender's domain to an id without one, because RFC 5322 requires a domain.
func messageID(id, sender string) (string, error) {
	invalid := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`<>()[]\,;:"`, r) }
	local, domain, found := strings.Cut(id, "@")
	if !found {
		_, domain, _ = strings.Cut(sender, "@")
	}
	if local == "" || domain == "" || strings.ContainsRune(domain, '@') || strings.ContainsFunc(local+domain, invalid) || len(id) > maxField {
		return "", fmt.Errorf("mail: message id is not valid")
	}
	return local + "@" + domain, nil
}

// isAllowed reports whether a further header may have a name: a token (RFC 9110, section
// 5.6.2) of at most 70 characters that neither Compose nor the mail transport sets.
func isAllowed(name string) bool {
	const punctuation = "!#$%&'*+-.^_`|~"
	isTokenChar := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(punctuation, r)
	}
	switch strings.ToLower(name) {
	case "", "from", "to", "cc", "bcc", "sender", "subject", "date", "message-id", "mime-version",
		"content-type", "content-transfer-encoding", "content-disposition", "received", "return-path":
		return false
	}
	return len(name) <= 70 && !strings.ContainsFunc(name, func(r rune) bool { return !isTokenChar(r) })
}

func fieldText(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	s = strings.ReplaceAll(s, "=?", "= ?")
	if len(s) > maxField {
		s = strings.ToValidUTF8(s[:maxField], "")
	}
	return strings.TrimSpace(s)
}
