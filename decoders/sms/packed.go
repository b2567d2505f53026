package sms

// Unpack spreads packed 7-bit text (TS 23.038, 6.1.2.1) to one septet per octet. before is
// the number of octets of user data header before data: the text begins at the next septet's
// border behind them.
//
// The number of septets follows from the octets only. Where seven bits are
// left over, they are taken for padding if they are zero, which could also be
// the character @, or a carriage return, as 6.1.2.3.1 pads.
func Unpack(data []byte, headerOctets int) []byte {
	const bits = 7
	offset := (bits - headerOctets*8%bits) % bits // the fill bits
	if offset > len(data)*8 {
		return nil
	}
	buf := make([]byte, 0, (len(data)*8-offset)/bits)
	for ; offset+bits <= len(data)*8; offset += bits {
		v := uint16(data[offset/8])
		if offset/8+1 < len(data) {
			v |= uint16(data[offset/8+1]) << 8
		}
		buf = append(buf, byte(v>>(offset%8))&0x7F)
	}
	if lastIndex := len(buf) - 1; offset == len(data)*8 && lastIndex >= 0 && (buf[lastIndex] == 0 || buf[lastIndex] == '\r') {
		buf = buf[:lastIndex]
	}
	return buf
}

// Pack packs septets, one in each octet, as on the air (TS 23.038, 6.1.2.1). before is the
// number of octets of user data header before them. Seven bits that are left over are a
// carriage return (6.1.2.3.1): zeros would be an @.
func Pack(septets []byte, headerOctets int) []byte {
	const bits = 7
	offset := (bits - headerOctets*8%bits) % bits // the fill bits
	end := offset + bits*len(septets)
	if end%8 == 1 && len(septets) > 0 {
		septets = append(septets[:len(septets):len(septets)], '\r')
	}
	buf := make([]byte, (end+7)/8)
	for _, c := range septets {
		v := uint16(c&0x7F) << (offset % 8)
		buf[offset/8] |= byte(v)
		if offset/8+1 < len(buf) {
			buf[offset/8+1] |= byte(v >> 8)
		}
		offset += bits
	}
	return buf
}
