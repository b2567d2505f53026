// Package event describes what arrived: every record of the journal and what
// became of it.
package event
