// Package credit holds what an account may spend, in SMS credits, and the list
// of everything that changed it, for audits.
//
// A change is one transaction; the balance is never below zero, also with concurrent
// charges. A change carries an id, and the same id changes the balance once, so that
// a change whose response was lost may be repeated.
//
// The row of an account's balance is locked for each change, so the balance and
// the entries always agree and no two gateways spend the same credit. The key
// (account, id) of an entry makes a change happen once. An id is known for as long
// as its entry is kept, and for a day at least.
package credit
