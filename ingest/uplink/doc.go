// Package uplink is the HTTP surface for network servers and sensor vendors, and the
// processor that converts their frames to readings.
//
// A post is answered once it is in the journal and before it is decoded, except by
// the generic webhook, whose response lists the updated sensors. Posts that cannot
// be interpreted get a 2xx and are quarantined, because senders disable a webhook
// that refuses. Unknown tokens, bodies that are neither JSON nor a form nor XML (422), protobuf (415) and
// bodies over the limit (413) are refused.
package uplink
