package decoders

// Elements counts the values of a decoded JSON value, nested ones and one for each 64
// bytes of a text, and returns what is left of a budget: less than 0 if it does not
// suffice.
func Elements(v any, left int) int {
	left--
	switch v := v.(type) {
	case string:
		left -= len(v) >> 6
	case []any:
		for i := 0; i < len(v) && left >= 0; i++ {
			left = Elements(v[i], left)
		}
	case map[string]any:
		for _, x := range v {
			if left < 0 {
				break
			}
			left = Elements(x, left)
		}
	}
	return left
}
