// Package job holds work that an interface answers with an id before it is
// done: queued → processing → completed or failed.
//
// The record is the truth. It is saved before its id is told; whoever works on
// it holds its lease; a lease that ran out, because the process died, is taken
// by another. So a job may run twice, and a Runner must make twice the same as
// once. What is nobody's fault (a back end that is down) never fails a job. A
// job that has begun is processing until its end, also while it waits to be tried
// again.
//
// A job may stand in a list of its account, in the order of creation.
package job
