package lease

// Gate reports whether work may begin; *gateway.Gate implements it.
type Gate interface {
	// Closed reports whether no record may be leased and no work may begin.
	Closed() bool
}

// alwaysOpen is the Gate of workers without one.
type alwaysOpen struct{}

func (alwaysOpen) Closed() bool { return false }

// OrOpen returns a gate, and one that is never closed for nil.
func OrOpen(g Gate) Gate {
	if g == nil {
		return alwaysOpen{}
	}
	return g
}
