// Package credit keeps the credit of accounts in SQL; see relay/credit.
//
// The row of an account's balance is locked for each change of it, so the
// balance and the entries always agree and no two gateways spend the same
// credit. The key (account, id) of an entry makes a change happen once; an id is
// known for as long as its entry is kept, and for a day at least.
package credit
