// Package queue delivers the records of the outbox: it makes first attempts at
// once, in process and under a lease, and is the only package that uses asynq,
// which schedules retries.
//
// The record in the outbox is authoritative; an asynq task only carries the
// record's name and schedules the next attempt. A task that runs twice, late or
// never does no harm:
//
//   - An attempt requires the record's lease, which is renewed while the
//     delivery waits or runs in memory.
//   - An outcome that is not saved yet is kept and saved with the queue's own
//     context; the delivery is not sent again before that.
//   - A reconciler schedules deliveries that are due, for example after a crash,
//     a replay, or when asynq has lost a task; the first to acquire the lease
//     attempts it.
//   - asynq never counts, archives or decides: attempts, delays and final states
//     are the record's.
//
// Each endpoint has a queue of its own, with the pace that its relay configures,
// so that an endpoint that hangs delays no other. Deliveries that do not fit in
// memory stay in the store. Consecutive failures of an endpoint open its
// breaker: its deliveries are parked in the store until a probe succeeds.
package queue
