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
)

// One connection, upgraded by STARTTLS, carries accepted and refused mails in
// turn, and the accepted ones arrive as they were meant.
func TestPostfixTakesMailsOverOneConnection(t *testing.T) {
	server := smtptest.Start(t)
	dials := 0
	c := newClient(t, Options{Addr: server.Addr, RootCAs: server.CAs, Hello: "gateway.penstock.test", Dial: counted(&dials)})
	send := func(to, id string) Result {
		t.Helper()
		r, err := c.Send(t.Context(), outbox.Mail{To: to, Subject: "SMS from Zoë (447700900123)", Text: "Grüße\n.\nfrom a line with a dot", MessageID: id})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, step := range []struct {
		to, id string
		status int
		text   string
	}{
		{"a@penstock.test", "one@gateway", 250, "queued as"},
		{smtptest.Greylisted, "two@gateway", 450, "Greylisted"},
		{smtptest.Rejected, "three@gateway", 550, "No such user"},
		{"b@elsewhere.test", "four@gateway", 554, "Relay access denied"},
		{"b@penstock.test", "five@gateway", 250, "queued as"},
	} {
		if r := send(step.to, step.id); r.Status != step.status || !strings.Contains(r.Response, step.text) {
			t.Errorf("%s: got %+v, want %d … %s", step.to, r, step.status, step.text)
		}
	}
	if dials != 1 {
		t.Errorf("got %d connections, want 1", dials)
	}
	arrived := server.Wait(t, 2)
	if len(arrived) != 2 {
		t.Fatalf("%d mails arrived, want 2", len(arrived))
	}
	checkArrived(t, arrived[0])
}

func checkArrived(t *testing.T, raw string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil || subject != "SMS from Zoë (447700900123)" {
		t.Errorf("subject %q, %v", subject, err)
	}
	text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if got := strings.ReplaceAll(string(text), "\r\n", "\n"); err != nil || got != "Grüße\n.\nfrom a line with a dot\n" {
		t.Errorf("text %q, %v", got, err)
	}
	if via := m.Header.Get("Received"); !strings.Contains(via, "gateway.penstock.test") || !strings.Contains(via, "ESMTPS") {
		t.Errorf("arrived through %q, want our name and TLS", via)
	}
}
