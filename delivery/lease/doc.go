// Package lease is the common part of the workers that process records: package queue
// processes deliveries, queue/jobs jobs, and submit messages.
//
// A record has the time when it is due. Leasing it moves that time to the end of the
// lease, in one statement that changes only a record that is due. So each record has
// one worker at a time, in one process or many, and a record whose worker died is due
// again without further action. The life of a lease:
//
//  1. Acquired. A new record is created with a lease for its worker. Other records are
//     leased when they are due: after a query of the worker, a timer (queue/timer), or a
//     Reconciler, which lists records without a worker. Reserve prevents this process from
//     leasing a record that it already holds.
//  2. Held. Add puts the record into the Set, and the worker's queue limits the number of
//     concurrent attempts. A record for which the queue has no capacity is released, with the
//     time when it is due again.
//  3. Renewed. The Set renews leases that end soon, including those of waiting records. Before work
//     begins, MayBegin checks that the lease has not expired.
//  4. Finished. The Writer saves outcomes in batches and keeps each until the store has
//     it. The outcome reports whether and when the record is due again. Drop ends the hold
//     after that, so that no other attempt is made before the outcome is saved.
//  5. Or released: at shutdown, records whose work has not begun are due at once.
//
// The end of the lease is its fence: a lease in the store that ends later than this process
// can have requested belongs to another process, and is neither renewed nor released. The
// response to a call that moves the end may be lost. So the Set keeps two times: the end that
// the store has confirmed, which bounds the work, and the latest end that the store may have,
// which is the fence.
//
// The Gate stops all workers: while it is closed, nothing is leased and no work begins.
// Outcomes of work that had begun are saved.
//
// Jobs use the Reconciler only: a run ends before its lease does, and its outcome is
// saved separately.
package lease
