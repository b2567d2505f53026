// Package iot converts frames to readings, and keeps the devices, decoders, sensors, event
// markers and raw frames of accounts.
//
// Ingest lists the processing steps of a frame:
//
//	refresh → check → claim → identify → mergeParts → decode → save → keepFrames →
//	evaluateRules → countUnmapped
//
// A frame ends as one of these:
//
//	stored      its readings are in the reading store
//	refused     no readings are stored, radio data may be; its event is quarantined with the reason
//	duplicate   an earlier record brought the same frame; it can add radio data only
//	deferred    the batch had no time left for its codec; it is processed again
//
// The package refuses frames of devices that belong to another account, encrypted payloads,
// and frames without a decoder. Preview and Try compute the same without storing anything.
//
// Service has the operations, Store the records in SQL. ReadingStore and Cache are
// implemented by other packages.
package iot
