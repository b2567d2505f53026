package decoders

import (
	"bytes"
	"strconv"
)

// SurrogateReference returns the first character reference in the source of an XML token
// that is half of a surrogate pair, such as &#xD83D;. It returns "" if there is none. XML forbids
// such references (1.0, 4.1), even as a pair, but encoding/xml reads each as U+FFFD.
func SurrogateReference(token []byte) string {
	if bytes.HasPrefix(token, []byte("<![CDATA[")) {
		return "" // CDATA has no references
	}
	for {
		_, remaining, found := bytes.Cut(token, []byte("&#"))
		if !found {
			return ""
		}
		number, _, _ := bytes.Cut(remaining, []byte(";"))
		digits, base := string(number), 10
		if hex, ok := bytes.CutPrefix(number, []byte("x")); ok {
			digits, base = string(hex), 16
		}
		if n, err := strconv.ParseUint(digits, base, 32); err == nil && 0xD800 <= n && n <= 0xDFFF {
			return "&#" + string(number) + ";"
		}
		token = remaining
	}
}
