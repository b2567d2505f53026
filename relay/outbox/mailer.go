package outbox

import (
	"cmp"
	"context"
	"time"

	"github.com/penstock/penstock/relay"
)

// Mailer sends notices by e-mail as deliveries: retried and listed.
type Mailer struct {
	Sender
	Domain string // the right side of Message-IDs; empty means localhost
}

// Notice is a mail to one address.
type Notice struct {
	ID                string // the delivery's
	To, Subject, Text string
}

// Send sends notices of an account; about is their subject, for searches of
// deliveries. A notice whose id was saved before is not sent again.
func (m Mailer) Send(ctx context.Context, acct relay.AccountID, subject string, notices ...Notice) error {
	if len(notices) == 0 {
		return nil
	}
	now := m.Now()
	mails := make([]Delivery, len(notices))
	for i, n := range notices {
		mails[i] = Delivery{
			ID: n.ID, Account: acct, Kind: KindNotice, MessageID: subject, CreatedAt: now.Add(time.Duration(i)),
			Mail: &Mail{To: n.To, Subject: n.Subject, Text: n.Text, MessageID: n.ID + "@" + cmp.Or(m.Domain, "localhost")},
		}
	}
	return m.Sender.Send(ctx, mails)
}
