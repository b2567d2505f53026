// Package calls keeps the records of SIP calls in a SQLite database in the data
// directory; why not in Redis is in docs/adr.
//
// What Put has returned is on disk. A record whose key the account has is left as
// it is. Reading goes in pages, so that an archive of millions of calls holds
// neither memory nor the log of the database.
package calls
