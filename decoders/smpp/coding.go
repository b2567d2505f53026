package smpp

// Coding is the encoding of a text.
type Coding int

// The codings. Default is the SMSC's own alphabet, which the carrier says
// outside the protocol.
const (
	Default Coding = iota
	ASCII
	Latin1   // ISO 8859-1
	Cyrillic // ISO 8859-5
	Hebrew   // ISO 8859-8
	UCS2
	Octets // data, or text in a coding that is not known
)

// CodingOf reads a data_coding: SMPP's own values (5.2.19), and those of a
// handset's data coding scheme (TS 23.038, 4) that SMSCs pass on: 0x10 to 0x1F
// with a message class, 0xC0 to 0xEF waiting messages, 0xF0 to 0xFF classes.
func CodingOf(dataCoding byte) Coding {
	switch {
	case dataCoding < 0x10:
		return codingOfSMPP(dataCoding)
	case dataCoding < 0x20:
		return codingOfBits(dataCoding)
	case dataCoding >= 0xF0 && dataCoding&0x04 != 0:
		return Octets
	case dataCoding >= 0xF0, dataCoding >= 0xC0 && dataCoding < 0xE0:
		return Default
	case dataCoding >= 0xE0:
		return UCS2
	}
	return Octets
}

func codingOfSMPP(dataCoding byte) Coding {
	switch dataCoding {
	case 0:
		return Default
	case 1:
		return ASCII
	case 3:
		return Latin1
	case 6:
		return Cyrillic
	case 7:
		return Hebrew
	case 8:
		return UCS2
	}
	return Octets
}

// codingOfBits reads bits 3 and 2.
func codingOfBits(dataCoding byte) Coding {
	switch dataCoding >> 2 & 3 {
	case 0:
		return Default
	case 2:
		return UCS2
	}
	return Octets
}

// Alphabet is the encoding of an SMSC for text of data_coding 0, its default alphabet. It is
// agreed with the carrier, outside the protocol. Empty means AlphabetGSM7.
type Alphabet string

// The default alphabets of SMSCs.
const (
	AlphabetGSM7   Alphabet = "gsm7"        // a septet in each octet, as nearly all do
	AlphabetPacked Alphabet = "gsm7-packed" // septets packed as on the air
	AlphabetLatin1 Alphabet = "latin1"      // ISO 8859-1
)
