package e2e

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/delivery/email/smtptest"
	"github.com/penstock/penstock/relay/relaytest"
)

// DeliveredState is the state of a mail that arrived.
func (s *Site) DeliveredState() string {
	if s.SMTP == nil {
		return "simulated"
	}
	return "delivered"
}

// Mailbox returns an address that no other gateway of the site writes to.
func (*Site) Mailbox() string {
	return smtptest.NewRecipient()
}

// Mails lists the mails to an address, as the sink or the SMTP server has them. What
// came twice with one Message-ID, as after a kill, is one mail.
func (g *Gateway) Mails(recipient string) []string {
	g.T.Helper()
	lines := []string{}
	if g.Site.SMTP != nil {
		lines = g.Site.SMTP.Mails(g.T, recipient)
	} else {
		for _, f := range relaytest.Must(filepath.Glob(filepath.Join(g.DataDir(), "mail", "*.eml")))(g.T) {
			lines = append(lines, string(relaytest.Must(os.ReadFile(f))(g.T)))
		}
	}
	var found []string
	seen := make(map[string]bool)
	for _, m := range lines {
		m = strings.ReplaceAll(m, "\r\n", "\n")
		_, id, _ := strings.Cut(m, "\nMessage-Id: ")
		id, _, _ = strings.Cut(id, "\n")
		if strings.Contains(m, "\nTo: <"+recipient+">\n") && !seen[id] {
			seen[id] = true
			found = append(found, m)
		}
	}
	return found
}

// AwaitMail waits for a mail that holds a word in its text or header.
func (g *Gateway) AwaitMail(recipient, word string) string {
	g.T.Helper()
	found := ""
	relaytest.Eventually(g.T, "a mail with "+word, func() (any, bool) {
		lines := g.Mails(recipient)
		for _, m := range lines {
			if strings.Contains(m, word) {
				found = m
			}
		}
		return lines, found != ""
	})
	return found
}
