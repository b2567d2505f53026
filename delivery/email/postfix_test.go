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

// One connection, upgraded by STARTTLS, carries accepted and refused mails in
// turn, and the accepted ones arrive unchanged.
func TestPostfixAcceptsMailsOverOneConnection(t *testing.T) {
	server := smtptest.Shared(t)
	first, last := smtptest.NewRecipient(), smtptest.NewRecipient()
	dials := 0
	c := newClient(t, Options{Addr: server.Addr, RootCAs: server.CAs, Hello: "gateway.penstock.test", Dial: counted(&dials)})
	send := func(to, id string) Result {
		t.Helper()
		r, err := c.Send(t.Context(), outbox.Mail{To: to, Subject: "SMS from Zoë (447700900123)", Text: "Grüße\n.\nfrom a line with a dot", MessageID: id})
		relaytest.NoError(t, err)
		return r
	}
	for _, step := range []struct {
		to, id string
		status int
		text   string
	}{
		{first, "one@gateway", 250, "queued as"},
		{smtptest.Greylisted, "two@gateway", 450, "Greylisted"},
		{smtptest.Rejected, "three@gateway", 550, "No such user"},
		{"b@elsewhere.test", "four@gateway", 554, "Relay access denied"},
		{last, "five@gateway", 250, "queued as"},
	} {
		checkReply(t, step.to, send(step.to, step.id), step.status, step.text)
	}
	relaytest.Equal(t, "the number of connections", dials, 1)
	for _, to := range []string{first, last} {
		checkArrived(t, server.Wait(t, to, 1)[0])
	}
}

func checkArrived(t *testing.T, raw string) {
	t.Helper()
	m := relaytest.Must(mail.ReadMessage(strings.NewReader(raw)))(t)
	subject := relaytest.Must(new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")))(t)
	relaytest.Equal(t, "the subject", subject, "SMS from Zoë (447700900123)")
	text := relaytest.Must(io.ReadAll(quotedprintable.NewReader(m.Body)))(t)
	relaytest.Equal(t, "the text", strings.ReplaceAll(string(text), "\r\n", "\n"), "Grüße\n.\nfrom a line with a dot\n")
	if via := m.Header.Get("Received"); !strings.Contains(via, "gateway.penstock.test") || !strings.Contains(via, "ESMTPS") {
		t.Errorf("the Received header is %q, want gateway.penstock.test and ESMTPS", via)
	}
}
