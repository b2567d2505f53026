package e2e

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/delivery/email/smtptest"
	"github.com/penstock/penstock/relay/relaytest"
)

// DeliveredState returns the state of a delivered mail, which is "simulated" for the embedded
// sink.
func (s *Site) DeliveredState() string {
	if s.SMTP == nil {
		return "simulated"
	}
	return "delivered"
}

// Mailbox returns a new mail address, which no other test uses.
func (*Site) Mailbox() string {
	return smtptest.NewRecipient()
}

// Mails returns the mails to an address, from the sink or the SMTP server. It returns mails
// with the same Message-Id once: a gateway may send a mail again after a kill.
func (g *Gateway) Mails(recipient string) []string {
	g.T.Helper()
	mails := []string{}
	if g.Site.SMTP != nil {
		mails = g.Site.SMTP.Mails(g.T, recipient)
	} else {
		for _, f := range relaytest.Must(filepath.Glob(filepath.Join(g.DataDir(), "mail", "*.eml")))(g.T) {
			mails = append(mails, string(relaytest.Must(os.ReadFile(f))(g.T)))
		}
	}
	var found []string
	ids := make(map[string]bool)
	for _, m := range mails {
		m = strings.ReplaceAll(m, "\r\n", "\n")
		_, id, _ := strings.Cut(m, "\nMessage-Id: ")
		id, _, _ = strings.Cut(id, "\n")
		if strings.Contains(m, "\nTo: <"+recipient+">\n") && !ids[id] {
			ids[id] = true
			found = append(found, m)
		}
	}
	return found
}

// AwaitMail waits for a mail that contains a word in its text or header.
func (g *Gateway) AwaitMail(recipient, word string) string {
	g.T.Helper()
	found := ""
	relaytest.Eventually(g.T, "a mail with "+word, func() (any, bool) {
		mails := g.Mails(recipient)
		for _, m := range mails {
			if strings.Contains(m, word) {
				found = m
			}
		}
		return mails, found != ""
	})
	return found
}
