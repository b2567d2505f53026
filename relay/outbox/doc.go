// Package outbox holds deliveries: what was decided and must reach the outside.
//
// A Delivery is the truth about one such thing: what to send, where it stands,
// and every attempt made. It is saved before anything is sent, so that a crash
// at any instant leaves a record that a worker picks up. asynq is only the timer
// that says when the next attempt is due.
package outbox
