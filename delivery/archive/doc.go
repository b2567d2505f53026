// Package archive exports files that accounts request and keeps them until they
// expire: call records of an account in zip files (Store), and usage reports
// (FileStore).
//
// A file exists complete or not at all, and every gateway serves it. Memory does not
// grow with the number of records. The job of an export that a killed process left
// incomplete runs it again.
package archive
