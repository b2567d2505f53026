// Package job provides asynchronous work: an interface responds with the id of a job before
// the work is done.
//
//	queued ──▶ processing ──▶ completed
//	               │  ▲ │
//	               └──┘ └───▶ failed
//
// The record is authoritative. It is saved before its id is returned. A worker leases the
// job; if the process dies, the lease expires and another worker takes the job. A job may
// therefore run twice, and a Runner must be idempotent. A temporary fault, such as a back
// end that is down, never fails a job. Between tries, a job stays in the state processing.
//
// A list contains jobs of an account in the order of their creation. A job may belong to no list.
package job
