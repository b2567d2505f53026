package relay

import "time"

// Lease is the right to work on the record Ref until End. The record stores the end of its lease but
// not the holder. Another process can lease the record only after the end, so a lease with a later
// end belongs to another process.
type Lease[R comparable] struct {
	Ref R
	End time.Time
}
