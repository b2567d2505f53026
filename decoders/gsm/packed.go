package gsm

// Unpack spreads packed 7-bit text (TS 23.038, 6.1.2.1) to one septet per octet.
// before is how many octets of user data header stand before data: the text
// begins at the next septet's border behind them.
//
// How many septets there are is told by the octets only. Where seven bits are
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
