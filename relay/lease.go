package relay

import "time"

// Lease is the right to work on a record, named by Ref, until End. The record does
// not name its holder: another process can take the lease only after its end, so
// that a lease in the record with a later end belongs to another process.
type Lease[R comparable] struct {
	Ref R
	End time.Time
}
