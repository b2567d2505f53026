// Package archive exports files that accounts request and stores them until they
// expire: call records of an account in zip files (Store), and usage reports
// (FileStore).
//
// A file exists complete or not at all, and every gateway serves it. Memory does not
// grow with the number of records. If a process is killed during an export, the job of
// the export runs the export again.
package archive
