// Package credit holds what an account may spend, in SMS credits, and the list
// of everything that changed it, for audits.
//
// A change is one atomic step; the balance is never below zero, whoever charges
// at the same time. A change carries an id, and the same id changes the balance
// once, so that one whose answer was lost may be repeated.
package credit
