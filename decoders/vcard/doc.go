// Package vcard encodes a contact as vCard 2.1 (versit, 1996), 3.0 (RFC 2425
// and 2426) or 4.0 (RFC 6350), and addresses it to the vCard port of a phone
// (9204, WAP-259, 6.5). Lines end with CR LF and are at most 75 octets long:
// folded between characters in 3.0 and 4.0, broken as quoted-printable in 2.1,
// which allows folding at blanks only. Non-ASCII text is encoded as UTF-8; version 2.1 declares the
// encoding in the CHARSET parameter.
//
// It refuses text that cannot be decoded again: invalid UTF-8, control
// characters, line breaks outside the note, and an invalid birth date. The error names the
// field and the offset in the field.
package vcard
