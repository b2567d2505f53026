// Package worker makes one attempt of a delivery: it signs the request if the account
// has a secret, sends it over the matching transport and classifies the result. The
// schedule and the number of attempts are decided by package queue.
//
// Signatures follow Standard Webhooks 1.0 (symmetric, v1): webhook-id is the id of the
// delivery and the same for retries and replays, webhook-timestamp is the time of the
// attempt. A delivery with nothing to send is dead.
package worker
