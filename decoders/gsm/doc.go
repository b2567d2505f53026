// Package gsm translates what a short message carries: the GSM 7-bit default
// alphabet and its extension (3GPP TS 23.038, 6.2.1), UCS-2 (6.2.3) and the
// user data header (3GPP TS 23.040, 9.2.3.24).
//
// 7-bit data is one septet per octet, as SMPP and HTTP carriers hand it over;
// Unpack makes it so where it comes packed. The tables are its own: the library
// at hand builds its tables at first use without a lock, which two messages at
// once would race for; the tests compare with it. It refuses what is not in the
// alphabet, with the offset, rather than replace it; text is never written in
// national language tables, which not every phone has.
package gsm
