package sms

// Unpack spreads packed 7-bit text (TS 23.038, 6.1.2.1) to one septet per octet.
// before is how many octets of user data header stand before data: the text
// begins at the next septet's border behind them.
//
// The number of septets follows from the octets only. Where seven bits are
// left over, they are taken for padding if they are zero, which could also be
// the character @, or a carriage return, as 6.1.2.3.1 pads.
func Unpack(data []byte, before int) []byte {
	const bits = 7
	at := (bits - before*8%bits) % bits // the fill bits
	if at > len(data)*8 {
		return nil
	}
	out := make([]byte, 0, (len(data)*8-at)/bits)
	for ; at+bits <= len(data)*8; at += bits {
		v := uint16(data[at/8])
		if at/8+1 < len(data) {
			v |= uint16(data[at/8+1]) << 8
		}
		out = append(out, byte(v>>(at%8))&0x7F)
	}
	if last := len(out) - 1; at == len(data)*8 && last >= 0 && (out[last] == 0 || out[last] == '\r') {
		out = out[:last]
	}
	return out
}

// Pack packs septets, one in each octet, as on the air (TS 23.038, 6.1.2.1).
// before is how many octets of user data header will stand before them. Seven
// bits that are left over are a carriage return (6.1.2.3.1): zeros would be an @.
func Pack(septets []byte, before int) []byte {
	const bits = 7
	at := (bits - before*8%bits) % bits // the fill bits
	end := at + bits*len(septets)
	if end%8 == 1 && len(septets) > 0 {
		septets = append(septets[:len(septets):len(septets)], '\r')
	}
	out := make([]byte, (end+7)/8)
	for _, c := range septets {
		v := uint16(c&0x7F) << (at % 8)
		out[at/8] |= byte(v)
		if at/8+1 < len(out) {
			out[at/8+1] |= byte(v >> 8)
		}
		at += bits
	}
	return out
}
