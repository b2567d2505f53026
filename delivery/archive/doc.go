// Package archive makes the files that somebody asked for, and keeps them in a
// directory until they expire: call records of an account in zip files (Store),
// and whatever else a Shelf is told to write.
//
// A file is there whole or not at all: it is written beside, made durable and
// renamed. Its memory does not grow with the number of records. What a killed
// process left half made is removed at the next start, and made again by its job.
package archive
