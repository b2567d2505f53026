// Package queue brings deliveries to their ends: it makes first attempts at
// once, in process and under a lease, and is the only door to asynq, which
// wakes what must be tried again.
//
// The record in the outbox is the truth; an asynq task is an alarm clock that
// carries the record's name and lives as long as the record waits. So a task
// that runs twice, late or never does no harm:
//
//   - Whoever attempts holds the record's lease, and renews it while the
//     delivery waits or runs in memory.
//   - An outcome that could not be saved yet is remembered and saved with the
//     queue's own context; nothing is sent again before that.
//   - A reconciler looks at what is due and has it attempted, for example after
//     a crash, a replay, or when asynq has lost a task; whoever leases first does.
//   - asynq never counts, never archives and never decides: attempts, delays
//     and ends are the record's.
//
// Each endpoint has a lane of its own, with the pace its relay asks for, so that
// one that hangs delays no other. What does not fit in memory stays in the store
// and is picked up from there. An endpoint that fails again and again has its
// breaker opened: what goes there waits in the store until a probe arrives.
package queue
