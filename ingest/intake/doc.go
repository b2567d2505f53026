// Package intake takes traffic in: it writes what arrived to the journal before
// anybody is told that it was accepted, and feeds it to the processor behind.
//
// Each kind of traffic has its own journal and consumer, so that a back end
// that is down stops only the kinds that need it. A record that fails for a
// reason of its own is set aside with that reason and never blocks those behind
// it. The checkpoint moves after the effects are durable elsewhere: everything
// is processed at least once.
package intake
