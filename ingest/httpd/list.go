package httpd

// Each returns the records of a list as a surface shows them. An empty list stays a
// list in JSON.
func Each[A, B any](list []A, shown func(A) B) []B {
	out := make([]B, len(list))
	for i, v := range list {
		out[i] = shown(v)
	}
	return out
}
