// Package intake accepts traffic: it writes requests to the journal before they are
// acknowledged, and passes them to a processor.
//
// A journal.Record is bytes on disk, an Entry the request that they encode, an Item an
// entry while it is processed, and an event.Event what operators see of it.
//
// Each kind of traffic has its own journal and consumer, so that a back end
// that is down stops only the kinds that need it. A record that fails by itself is
// quarantined with the reason and never blocks later ones. The checkpoint advances
// after the effects are durable elsewhere: every record is processed at least once.
package intake
