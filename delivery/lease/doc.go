// Package lease has what the workers on records have in common: package queue
// works on deliveries, queue/jobs on jobs, and submit on messages.
//
// A record says when it is due. To lease it is to move that time into the future, to
// the end of the lease, in one statement that changes only a record that is due. So
// each record has one worker at a time, in one process or many, and the record of a
// worker that died is due again by itself. The life of a lease:
//
//  1. Acquired. A worker that just created a record created it leased. Any other is
//     found when it is due: by the worker's own query, by a timer (queue/timer), or
//     by a Reconciler, which lists what nobody works on. Reserve keeps this process
//     from leasing a record that it holds.
//  2. Held. Add puts the record into the Set, and the worker's queue bounds how many
//     are worked on at once. A record without capacity is given back with the time
//     when it is due again.
//  3. Renewed. The Set moves the ends of leases that end soon, whether their records
//     wait or are worked on. Nothing is begun once a lease has Expired.
//  4. Finished. The outcome goes to the Writer, which saves outcomes in batches and
//     keeps each until the store has it. The outcome says whether and when the record
//     is due again. Only then Drop ends the hold, so that no other attempt is made
//     while an outcome is not saved.
//  5. Or given back: at shutdown, what was not begun is released and due at once.
//
// The end of the lease is its fence: a lease in the store that ends later than this
// process can have asked for is another's, and is neither renewed nor released. The
// answer to a call that moves the end may be lost; so the Set keeps two times, the
// end that the store has confirmed, which bounds the work, and the latest that it may
// have, which is the fence.
//
// Jobs use the Reconciler alone: a run ends before its lease does, and its outcome is
// saved by itself.
package lease
