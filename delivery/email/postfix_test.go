package email

import (
	"io"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"

	"github.com/penstock/penstock/delivery/email/smtptest"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

// Accepted and refused mails are sent over one connection with STARTTLS. Accepted mails arrive
// unchanged.
func TestPostfixAcceptsMailsOverOneConnection(t *testing.T) {
	server := smtptest.Shared(t)
	recipient1, recipient2 := smtptest.NewRecipient(), smtptest.NewRecipient()
	dials := 0
	c := newClient(t, Options{Addr: server.Addr, RootCAs: server.CAs, Hello: "gateway.penstock.test", Dial: countDials(&dials)})
	send := func(recipient, id string) Result {
		t.Helper()
		r, err := c.Send(t.Context(), outbox.Mail{To: recipient, Subject: "SMS from Zoë (447700900123)", Text: "Grüße\n.\nfrom a line with a dot", MessageID: id})
		relaytest.NoError(t, err)
		return r
	}
	for _, step := range []struct {
		recipient, id string
		status        int
		text          string
	}{
		{recipient1, "one@gateway", 250, "queued as"},
		{smtptest.Greylisted, "two@gateway", 450, "Greylisted"},
		{smtptest.Rejected, "three@gateway", 550, "No such user"},
		{"b@elsewhere.test", "four@gateway", 554, "Relay access denied"},
		{recipient2, "five@gateway", 250, "queued as"},
	} {
		expectReply(t, step.recipient, send(step.recipient, step.id), step.status, step.text)
	}
	relaytest.Equal(t, "the number of connections", dials, 1)
	for _, recipient := range []string{recipient1, recipient2} {
		expectUnchanged(t, server.Wait(t, recipient, 1)[0])
	}
}

func expectUnchanged(t *testing.T, raw string) {
	t.Helper()
	m := relaytest.Must(mail.ReadMessage(strings.NewReader(raw)))(t)
	subject := relaytest.Must(new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")))(t)
	relaytest.Equal(t, "the subject", subject, "SMS from Zoë (447700900123)")
	text := relaytest.Must(io.ReadAll(quotedprintable.NewReader(m.Body)))(t)
	relaytest.Equal(t, "the text", strings.ReplaceAll(string(text), "\r\n", "\n"), "Grüße\n.\nfrom a line with a dot\n")
	if via := m.Header.Get("Received"); !strings.Contains(via, "gateway.penstock.test") || !strings.Contains(via, "ESMTPS") {
		t.Errorf("Received = %q, want it to contain gateway.penstock.test and ESMTPS", via)
	}
}
