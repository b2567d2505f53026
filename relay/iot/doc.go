// Package iot converts frames to readings and manages the devices, decoders, sensors, event markers
// and raw frames of accounts.
//
// Ingest lists the processing steps of a frame:
//
//	refresh → check → deduplicate → identify → mergePosts → decode → save →
//	logFrames → evaluateRules → countUnmapped
//
// A frame has one of these outcomes:
//
//	accepted    its readings are in the reading store; a frame may have none, as a join, and
//	            simulated frames are not stored
//	refused     its readings are not stored, but its radio data may be; its event is quarantined
//	duplicate   an earlier record has the same frame; the duplicate can only add radio data
//	deferred    the batch had no time left for its codec, or the codec exceeded a limit in its last
//	            call; the frame is processed again
//
// The package refuses frames of devices of other accounts, encrypted payloads, and frames without a
// decoder. Preview and Try compute outcomes without storing anything.
//
// Service has the operations, and Store stores the records in SQL. Other packages implement
// ReadingStore and Cache.
package iot
