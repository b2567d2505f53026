// Package archive writes the call records of an account into zip files, and keeps
// those in a directory until their handles expire.
//
// An archive is there whole or not at all: it is written beside, made durable and
// renamed. Its memory does not grow with the number of calls. What a killed
// process left half made is removed at the next start, and made again by its job.
package archive
