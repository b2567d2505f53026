// Package intake accepts traffic: it writes requests to the journal before they are
// acknowledged, and passes them to a processor.
// A journal.Record is bytes on disk. An Entry is the request that the bytes encode. An Item is an
// entry during its processing. An event.Event is the view of an entry for operators.
//
// Each kind of traffic has its own journal and consumer, so that a back end
// that is down stops only the kinds that need it. A record that fails by itself is
// quarantined with the reason and never blocks later ones. The checkpoint advances
// after the effects are durable elsewhere: every record is processed at least once.
package intake
