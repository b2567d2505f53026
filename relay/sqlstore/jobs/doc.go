// Package jobs keeps jobs in SQL; its Store is a job.Store and a job.Lister.
//
// A job is a row. Its lease is the time from which it is due again, which one
// conditional UPDATE takes. What else is saved in one transaction with a job calls
// Create, Settled and Settle with its own.
package jobs
