package email

import (
	"io"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

func sender() mail.Address { return mail.Address{Name: "Gateway", Address: "gateway@penstock.test"} }

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func TestComposeWritesTheGoldenFile(t *testing.T) {
	got, err := Compose(sender(), outbox.Mail{
		To: "a@example.test", Subject: "SMS from Zoë (447700900123)", Text: "Grüße, 100 %=\r\nsecond line",
		MessageID: "d1", Header: map[string]string{"X-MS-Reply-To-Mobile": "447700900123", "Content-class": "MS-OMS-SMS"},
	}, noon())
	relaytest.NoError(t, err)
	want, err := os.ReadFile("testdata/sms.eml")
	relaytest.NoError(t, err)
	if string(got) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAHostileNameAddsNoHeaderField(t *testing.T) {
	for _, name := range []string{
		"Mallory\r\nBcc: victim@example.test", "Mallory\nBcc: victim@example.test", "Mallory\rBcc: x", "Mallory\x00\x0b\x85Bcc: x", "Mallory\u2028Bcc: x",
		"=?utf-8?q?a=0D=0ABcc:_x?=", "\r\n\r\nbody", strings.Repeat("long ", 400), strings.Repeat("ü", 2000), "\xff\xfe", "",
	} {
		m := outbox.Mail{To: "a@example.test", Subject: name, Text: "x", MessageID: "d1@x", Header: map[string]string{"X-Name": name}}
		raw, err := Compose(mail.Address{Name: name, Address: "gateway@penstock.test"}, m, noon())
		relaytest.NoError(t, err)
		parseMail(t, raw, "X-Name")
	}
}

// parseMail parses a mail. It expects exactly the header fields of Compose and extraFields, and
// only lines that every server accepts.
func parseMail(t *testing.T, raw []byte, extraFields ...string) *mail.Message {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatalf("parse the mail: %v in\n%s", err, raw)
	}
	want := append([]string{"From", "To", "Subject", "Date", "Message-Id", "Mime-Version", "Content-Type", "Content-Transfer-Encoding"}, extraFields...)
	var got []string
	for name, values := range m.Header {
		got = append(got, name)
		if len(values) != 1 {
			t.Errorf("%s occurs %d times, want once, in\n%s", name, len(values), raw)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("header fields %q, want %q in\n%s", got, want, raw)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(raw), "\r\n"), "\r\n") {
		if len(line) > 998 || strings.ContainsAny(line, "\r\n\x00") {
			t.Errorf("a line of %d bytes is too long or has control characters: %q", len(line), line)
		}
	}
	return m
}

func TestHeaderNamesThatAreNotAllowedAreRefused(t *testing.T) {
	for _, name := range []string{"", "Bcc", "bcc", "SUBJECT", "Content-Type", "X Name", "X:", "X\r\nBcc", "Größe", strings.Repeat("X", 71)} {
		if _, err := Compose(sender(), outbox.Mail{To: "a@example.test", MessageID: "d1", Header: map[string]string{name: "x"}}, noon()); err == nil {
			t.Errorf("the header name %q was accepted", name)
		}
	}
}

func TestMessageIDsGetADomainAndInvalidOnesAreRefused(t *testing.T) {
	for id, want := range map[string]string{
		"d1": "d1@penstock.test", "d1@gw.test": "d1@gw.test", "": "", "a b": "", "a@b@c": "", "<a@b>": "", "a\r\nBcc: x@b": "", "@b": "", "a@": "", "ü@b": "",
	} {
		if got, err := messageID(id, "gateway@penstock.test"); got != want || (err == nil) != (want != "") {
			t.Errorf("messageID(%q) = %q, error %v, want %q", id, got, err, want)
		}
	}
}

// FuzzCompose parses composed mails: they have only allowed header fields, and their subject and
// text are those of fieldText and bodyText.
func FuzzCompose(f *testing.F) {
	f.Add("a@example.test", "SMS from Zoë", "Hello\n.\nworld", "X-Name", "value", "Gateway")
	f.Add("\"a b\"@example.test", "=?utf-8?q?x?=", "\r\n\r\n", "Content-class", "MS-OMS-SMS\r\nBcc: x", "")
	f.Add("a@[127.0.0.1]", strings.Repeat("=? ", 200), "\xff\x00\x1b", "X", "\x7f", "Ä\"<>")
	f.Fuzz(func(t *testing.T, recipient, subject, text, name, value, senderName string) {
		m := outbox.Mail{To: recipient, Subject: subject, Text: text, MessageID: "d1", Header: map[string]string{name: value}}
		raw, err := Compose(mail.Address{Name: senderName, Address: "gateway@penstock.test"}, m, noon())
		if err != nil {
			return
		}
		read := parseMail(t, raw, canonicalName(name))
		decoded, err := new(mime.WordDecoder).DecodeHeader(read.Header.Get("Subject"))
		if err != nil || decoded != fieldText(subject) {
			t.Errorf("subject %q became %q, %v", fieldText(subject), decoded, err)
		}
		if a, err := read.Header.AddressList("To"); err != nil || len(a) != 1 {
			t.Errorf("recipient %q became %v, %v", recipient, a, err)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(read.Body))
		if got := strings.ReplaceAll(string(body), "\r\n", "\n"); err != nil || got != bodyText(text) {
			t.Errorf("text %q became %q, %v", bodyText(text), got, err)
		}
	})
}

func canonicalName(name string) string {
	m, err := mail.ReadMessage(strings.NewReader(name + ": x\r\n\r\n"))
	if err != nil {
		return name
	}
	for canonical := range m.Header {
		return canonical
	}
	return name
}
