// Package messages keeps the messages that accounts send, on SQL: what is to be
// submitted and when, the state of every part, the ids that carriers gave them,
// and the reports that accounts still have to get.
//
// A message is a row that never changes (message) and a narrow one that does
// (message_state), so that an attempt rewrites neither the text nor the indexes
// of numbers. A batch is read under its locks, changed here, and written back:
// two statements, however many messages there are.
package messages
