// Package archive makes the files that accounts ask for, and has them kept until
// they expire: call records of an account in zip files (Store), and whatever else
// is written to a Shelf.
//
// A file is there whole or not at all, and every gateway serves it. Its memory does
// not grow with the number of records. What a killed process left half made is made
// again by its job.
package archive
