// Package jobs runs the jobs that relay/job stores.
//
// A job's task (package timer) schedules its runs, and lives as long as the job
// does. A run requires the job's lease, and stops before the lease ends. A
// reconciler schedules jobs that are due without a live task, for example after a
// crash, and runs them in process if that does not help.
package jobs
