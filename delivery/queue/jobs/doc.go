// Package jobs runs jobs: it is to relay/job what package queue is to
// deliveries.
//
// The record is the truth; an asynq task is an alarm clock that carries the
// job's name (TaskID = the job's id) and lives as long as the job does. Whoever
// runs a job holds its lease, and stops before the lease ends. What is due and
// has no live task, after a crash for example, is woken by a reconciler, and
// run in process when that has not helped.
package jobs
