// Package email brings mails to one SMTP server, the operator's own relay or
// smarthost, which takes them further (RFC 5321; STARTTLS: RFC 3207; AUTH:
// RFC 4954; submission over TLS: RFC 8314).
//
// The server's address is the operator's own setting and usually private, so
// the address guard does not apply to it; reaching the recipients' domains is
// that server's business. Options.Dial takes a guarded dialer for addresses that
// the operator does not control.
//
// A mail goes to one recipient in its own transaction, so that its result is
// its own. Whatever goes wrong before the server has answered about the mail
// (no connection, no TLS, refused credentials, a refused sender) is marked
// delivery.OwnFault. A connection lost after the final dot leaves the outcome
// unknown; the mail is tried again, and its Message-ID, which never changes,
// lets the receiving side see the repetition.
//
// Options.DKIM signs every mail for the sender's domain (RFC 6376).
//
// It refuses to fall back to plain text where TLS is configured, and to send
// credentials in plain text to anything but a loopback address.
package email
