// Package sms encodes, splits and decodes short messages: the GSM 7-bit default
// alphabet with its extension and national language tables (3GPP TS 23.038, 6.2.1),
// UCS-2 (6.2.3), the user data header and concatenation (3GPP TS 23.040, 9.2.3.24).
//
// A text is GSM 7-bit if the default alphabet and its extension have all its
// characters, else UCS-2; texts are not written in national language tables, because
// few phones have them. A message that does not fit one part is concatenated with
// 8-bit references; an escape stays with its character, a surrogate with its pair,
// also where a text is truncated. No character is replaced or transliterated: an
// error names the field and the offset.
//
// Septets are held unpacked, one in an octet, as SMPP and HTTP carriers send them;
// Unpack and Pack convert. The library (warthog618/sms) draws the boundaries of parts;
// the alphabets are this package's own, because the library builds its tables at first
// use without a lock. The tests compare both.
package sms
