// Package sms makes short messages of what is to be sent: a text becomes GSM
// 7-bit or UCS-2 parts, octets with a user data header become binary parts
// (3GPP TS 23.040, 9.2.3.24; TS 23.038). Each part is what one submission to a
// carrier holds, and at most 140 octets on the air.
//
// A text is GSM 7-bit when the default alphabet and its extension have all of
// it, UCS-2 otherwise; national language tables are not used, because few
// phones have them. What does not fit one message is concatenated with 8-bit
// references; an escape stays with its character, a surrogate with its pair.
// So does a text that was truncated.
//
// It refuses text that is not UTF-8, more than 255 parts, hex that is none,
// data that its coding cannot be and a header that leaves no room, always with
// the field and the offset. It never replaces or transliterates a character.
//
// The boundaries are drawn by the library (warthog618/sms); the alphabets are
// those of decoders/gsm, because the library builds its tables at first use
// without a lock, and numbers of parts beyond 255 overflow there.
package sms
