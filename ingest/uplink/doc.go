// Package uplink provides the webhooks for network servers and sensor vendors, and the processor
// that converts frames to readings.
//
// A post is answered once it is in the journal and before it is decoded, except by
// the generic webhook, whose response lists the updated sensors. Posts with unknown content
// are answered with a 2xx and quarantined, because senders disable a webhook that refuses posts.
// Unknown tokens, bodies that are neither JSON nor a form nor XML (422), protobuf (415) and
// bodies above the limit (413) are refused.
package uplink
