package sms

// Coding is how a message is coded on the air. The values are those of the
// binary operation's encoding and of the placeholder %code.
type Coding int

// The codings.
const (
	GSM    Coding = 7  // 7-bit default alphabet with its extension
	Binary Coding = 8  // octets that only the receiver understands
	UCS2   Coding = 16 // big-endian UTF-16
)
