package relay

import "time"

// Lease is the right to work on the record Ref until End. The record has the end of its lease but not
// the holder: another process can lease it only after that end, so a lease with a later end belongs
// to another process.
type Lease[R comparable] struct {
	Ref R
	End time.Time
}
