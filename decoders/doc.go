// Package decoders holds the common types of every translator: the Frame that a network
// server or sensor vendor posted, the Readings that a codec makes of it, and the Error that
// names the place where bytes could not be read.
//
// The packages below it translate and do nothing else: netserver turns a
// posted body into Frames, cayenne, senml, script and jsonvalues turn a Frame
// into Readings, catalog picks one of them by name. All of them are pure. They
// do no I/O, read no clock and keep no state between calls, so they run the
// same live, in a replay and in a playground. They refuse rather than guess:
// ciphertext is never decoded, and what is essential and unreadable is an
// Error with its field and offset.
package decoders
