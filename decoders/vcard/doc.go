// Package vcard writes a contact card as vCard 2.1 (versit, 1996), 3.0 (RFC 2425
// and 2426) or 4.0 (RFC 6350), and addresses it to the vCard port of a phone
// (9204, WAP-259, 6.5). Lines end with CR LF and are at most 75 octets long:
// folded between characters in 3.0 and 4.0, broken as quoted-printable in 2.1,
// which may fold at blanks only. What is not ASCII is UTF-8, declared in 2.1.
//
// It refuses what a reader would not get back: text that is not UTF-8, control
// characters, line breaks outside the note, and a birth date that is none;
// always with the field, and the offset in it.
package vcard
