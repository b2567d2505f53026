// Package files keeps files in the record store, for a time, so that every gateway
// serves what one of them made.
//
// A file is written as a stream of chunks and can be opened once the last of them
// is there: its row then names its content. One that is written again is replaced
// in that moment; what reads the former content reads it to its end. Chunks of a
// writer that died are swept when their content has not grown for an hour.
package files
