// Package sim provides the SIMs of accounts, with their subscribers, pools, recipients of
// notifications and monthly limits.
//
// An ICCID identifies a SIM. A SIM belongs to one account, at most one pool and at most one
// subscriber. Only jobs change the state of a SIM (package provisioning):
//
//	pending ──activate──▶ active ──suspend──▶ suspended
//	                       ▲  │ ◀─unsuspend──  │
//	                       │  └──── terminate ─┴──▶ terminated
//
// RequestedState is the state that the job in progress will set; without a job it equals State.
//
// Service has the operations that take effect at once: lists, limits, recipients, pools,
// subscribers and the callback URL. SIMs, Pools and Subscribers store the records. A request
// about several SIMs changes all of them or none.
//
// The error for a record of another account is the same as for a missing record. The package
// refuses to attach a SIM that is in another pool, and a warning above the limit. It never logs PINs
// and PUKs.
package sim
