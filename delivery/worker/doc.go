// Package worker makes one attempt of a delivery: it adds the headers of the request,
// sends it over the matching transport and classifies the result. Package queue determines
// the schedule and the number of attempts.
//
// Every request has the headers of Standard Webhooks 1.0: webhook-id is the id of the
// delivery and the same for retries and replays, webhook-timestamp is the time of the
// attempt. If the account has a secret, webhook-signature has symmetric signatures (v1).
// A delivery with nothing to send is dead.
package worker
