// Package worker does one delivery: it signs what the account wants signed,
// sends it through the way out that fits and says how it went. It decides
// nothing about time or number of attempts; that is the queue's.
//
// Signatures follow Standard Webhooks 1.0 (symmetric, v1): the webhook-id is the
// delivery's and stays the same over retries and replays, the timestamp is that
// of the attempt. A delivery with nothing to send is refused as dead.
package worker
