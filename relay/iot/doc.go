// Package iot converts frames to readings, and manages the devices, decoders, sensors, event
// markers and raw frames of accounts.
//
// Ingest lists the processing steps of a frame:
//
//	refresh → check → claim → identify → mergeParts → decode → save → logFrames →
//	evaluateRules → countUnmapped
//
// A frame ends as one of these:
//
//	stored      its readings are in the reading store
//	refused     its readings are not stored, its radio data may be; its event is quarantined
//	duplicate   an earlier record brought the same frame; it can only add radio data
//	deferred    the batch had no time left for its codec; it is processed again
//
// The package refuses frames of devices that belong to another account, encrypted payloads,
// and frames without a decoder. Preview and Try compute outcomes without storing anything.
//
// Service has the operations, and Store stores the records in SQL. Other packages implement
// ReadingStore and Cache.
package iot
