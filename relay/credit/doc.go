// Package credit provides the balance of accounts, in SMS credits, and the entries of its changes,
// for audits.
//
// Apply applies changes in the transaction of the paid operation; the methods of Store use separate
// transactions. Each change locks the balance, so that it is never below zero
// (relay.KindNoCredit), and the entries always add up to it.
//
// A change has an id. The same id changes the balance once, so that a change may be repeated after
// a lost response. An id is known while its entry is stored: at least a day, and until there are
// 100,000 newer entries.
package credit
