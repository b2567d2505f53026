// Package iot turns frames into readings: devices and their import, decoders,
// sensors and their mapping, and what is kept of a frame.
//
// Ingest is the list of steps a frame goes through. The package refuses frames
// of devices that belong to another account, encrypted payloads, and frames for
// which there is no decoder; those are set aside with the reason.
package iot
