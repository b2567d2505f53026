// Package outbox holds deliveries: requests, mails and messages to external systems.
//
// A Delivery is the authoritative record of one of them: its content, its state and
// every attempt. It is saved before it is sent, so that after a crash at any instant a
// worker finds the record. asynq only provides the timer of the next attempt.
package outbox
