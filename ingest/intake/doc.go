// Package intake accepts traffic: it writes requests to the journal before they are
// acknowledged, and passes them to a processor.
//
// Each kind of traffic has its own journal and consumer, so that a back end
// that is down stops only the kinds that need it. A record that fails by itself is
// quarantined with the reason and never blocks later ones. The checkpoint advances
// after the effects are durable elsewhere: every record is processed at least once.
package intake
