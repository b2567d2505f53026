// Package uplink is the surface that network servers and sensor vendors post
// to, and the processor that brings their frames to readings.
//
// A post is answered as soon as the journal has it; nothing is decoded before,
// except for the generic webhook, whose answer lists the sensors updated. What
// means nothing to us gets its sender's 2xx all the same and a line in
// quarantine: senders disable a hook that refuses. Refused are unknown tokens,
// bodies that are no JSON (422), protobuf (415) and bodies over the limit (413).
package uplink
