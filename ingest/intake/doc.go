// Package intake writes requests to the journal before they are acknowledged, and passes
// them to a processor.
//
// A journal.Record is bytes on disk. An Entry is the request that the bytes encode. An Item is an
// entry that is being processed. An event.Event is an entry as operators see it.
//
// Each kind of traffic has its own journal and consumer, so that an unavailable back end
// stops only the kinds that need the back end. A record that fails by itself is
// quarantined with the reason and never blocks later ones. The checkpoint advances
// after the effects are durable elsewhere: every record is processed at least once.
package intake
