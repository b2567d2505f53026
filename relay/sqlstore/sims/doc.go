// Package sims keeps SIMs, pools, subscribers and what jobs do with SIMs in SQL.
//
// # Lists
//
// A list is the SIMs of an account, of a pool or of a subscriber, or an account's
// subscribers, in the order of a column, with ties in the order of ids; all by
// bytes. An account may have a million SIMs, and a page names its number and the
// total, so that neither may take a walk through the list: sim_block counts the
// records of each stretch of a list of some thousand (blocks.go), and a page is
// read from the nearest place that is known (plan.go). What a list gains or loses
// is counted in the transaction that does it, under the lock of that list, after
// the locks of SIMs.
package sims
