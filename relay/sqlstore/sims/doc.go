// Package sims keeps SIMs, pools, subscribers and what jobs do with SIMs in SQL.
//
// # Lists
//
// A list is the SIMs of an account, of a pool or of a subscriber, or an account's
// subscribers, in the order of a column, with ties in the order of ids; all by
// bytes. An account may have a million SIMs, and a page has its number and the
// total, so that neither may take a scan of the list: sim_block has the number of
// records in each range of some thousand (blocks.go), and a page is read from the
// nearest known position (plan.go). The counts are updated in the transaction that
// changes the list, under the lock of that list, after the locks of SIMs.
package sims
