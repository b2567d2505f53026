// Package email sends mails to one SMTP server, the operator's relay or smarthost,
// which delivers them further (RFC 5321; STARTTLS: RFC 3207; AUTH: RFC 4954; submission
// over TLS: RFC 8314).
//
// The address of the server is a setting of the operator and usually private, so the
// address guard does not apply to it. Options.Dial accepts a guarded dialer for
// addresses that the operator does not control.
//
// Each recipient has a transaction and a result of its own. An error before the server
// has replied to the mail (no connection, no TLS, refused credentials, a refused sender)
// is delivery.OwnFault. If the connection is lost after the final dot, the outcome is
// unknown: the mail is retried with the same Message-ID, by which the receiver can
// recognize the duplicate.
//
// Options.DKIM signs every mail for the sender's domain (RFC 6376).
//
// The client refuses to fall back to plain text where TLS is configured, and to send
// credentials in plain text to an address other than loopback.
package email
