// Package credit holds what an account may spend, in SMS credits, and the list
// of everything that changed it, for audits.
//
// A change is one transaction; the balance is never below zero, also with concurrent
// charges. A change carries an id, and the same id changes the balance once, so that
// a change whose response was lost may be repeated.
package credit
