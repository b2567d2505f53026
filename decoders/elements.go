package decoders

// Elements counts the values of a decoded JSON value, nested ones and one for each 64
// bytes of a text, and returns what is left of a budget: less than 0 if it does not
// suffice.
func Elements(v any, remaining int) int {
	remaining--
	switch v := v.(type) {
	case string:
		remaining -= len(v) >> 6
	case []any:
		for i := 0; i < len(v) && remaining >= 0; i++ {
			remaining = Elements(v[i], remaining)
		}
	case map[string]any:
		for _, x := range v {
			if remaining < 0 {
				break
			}
			remaining = Elements(x, remaining)
		}
	}
	return remaining
}
