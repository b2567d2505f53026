// Package iot converts frames to readings: it manages devices and their import,
// decoders, sensors and their mapping, and the raw frames of a device.
//
// Ingest lists the processing steps of a frame. The package refuses frames of
// devices that belong to another account, encrypted payloads, and frames without
// a decoder; their events are quarantined with the reason.
package iot
