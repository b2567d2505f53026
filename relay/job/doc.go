// Package job holds asynchronous work: an interface responds with the job's id
// before the work is done. States: queued → processing → completed or failed.
//
// The record is authoritative. It is saved before its id is returned. A worker holds
// the job's lease; a lease that has expired, because the process died, is taken by
// another worker. So a job may run twice, and a Runner must be idempotent. A
// temporary fault, such as a back end that is down, never fails a job. A job that
// has begun stays processing until its end, also between retries.
//
// A job may be in a list of its account, in the order of creation.
package job
