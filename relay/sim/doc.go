// Package sim keeps the SIMs of accounts, with their subscribers, pools, recipients of
// notifications and monthly limits, after document 2 of the specification.
//
// An ICCID identifies a SIM. A SIM belongs to one account, at most one pool and at most one
// subscriber. Only jobs change the state of a SIM (package provisioning):
//
//	pending ──activate──▶ active ──suspend──▶ suspended
//	                       ▲  │ ◀─unsuspend──  │
//	                       │  └──── terminate ─┴──▶ terminated
//
// Requested is the state after the job that is in progress; without a job it equals State.
//
// Service has the operations that take effect at once: lists, limits, recipients, pools,
// subscribers and the callback URL. SIMs, Pools and Subscribers store the records. A request
// about several SIMs changes all of them or none.
//
// The package refuses records of other accounts like missing ones, a SIM that is in another
// pool, and a warning above its limit. PIN and PUK are returned to the account's holder only,
// and never logged.
package sim
