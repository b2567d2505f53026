// Package credit provides the credit of accounts: what an account may spend, in SMS
// credits, and the list of its changes, for audits.
//
// Apply makes changes in the transaction of the operation that they pay for; the methods
// of Store make one in a transaction of its own. The balance is never below zero
// (relay.KindNoCredit), also with concurrent charges on several gateways: the row of the
// balance is locked for each change, and the entries of the list always add up to it.
//
// A change has an id, and the same id changes the balance once, so that a change whose
// response was lost may be repeated. An id is known for as long as its entry is stored:
// a day at least, and until there are 100,000 newer ones.
package credit
