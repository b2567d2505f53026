package decoders

// NormalizeDevEUI gives a devEUI as 16 lower-case hex digits. It takes any
// case, with colons, hyphens or spaces between the digits, and refuses
// anything else.
func NormalizeDevEUI(s string) (string, bool) {
	var out [16]byte
	n := 0
	for i := range len(s) {
		c := s[i]
		switch {
		case c == ':' || c == '-' || c == ' ':
			continue
		case c >= 'A' && c <= 'F':
			c += 'a' - 'A'
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f':
		default:
			return "", false
		}
		if n == len(out) {
			return "", false
		}
		out[n] = c
		n++
	}
	if n != len(out) {
		return "", false
	}
	if s == string(out[:]) {
		return s, true
	}
	return string(out[:]), true
}
