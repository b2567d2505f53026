// Package sms encodes, splits and decodes short messages: the GSM 7-bit default
// alphabet with its extension and national language tables (3GPP TS 23.038, 6.2.1),
// UCS-2 (6.2.3), the user data header and concatenation (3GPP TS 23.040, 9.2.3.24).
//
// A text is encoded in GSM 7-bit if the default alphabet and its extension have all its
// characters and the carrier can encode them (Options.FitsSevenBit), else in UCS-2. National
// language tables are used for decoding only, because few phones support them. A message that does
// not fit one part is concatenated with 8-bit references. No boundary, not even of a truncated
// text, separates an escape from its character or the halves of a surrogate pair. No character is
// replaced or transliterated; an error names the field and the offset.
//
// Septets are unpacked, one in an octet, as SMPP and HTTP carriers send them;
// Unpack and Pack convert. The library warthog618/sms determines the boundaries of parts and
// provides the national language tables.
package sms
