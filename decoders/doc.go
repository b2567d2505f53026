// Package decoders has the common types of all codecs and parsers: the Frame from a network
// server or sensor vendor, the Readings that a codec decodes from it, and the Error that
// names the place of invalid bytes.
// Of the packages in this folder, netserver parses a webhook into Frames; cayenne, senml, script and
// jsonvalues decode a Frame into Readings, with the help of values; and catalog returns a codec by
// its name. The other packages parse and encode the formats of carriers and switches, and numbers,
// times, JSON and JWTs. All of them are pure. They do no I/O, read no clock and keep no state
// between calls, so the result is the same live, in a replay and in a preview. They do not guess:
// ciphertext is never decoded, and an essential field that cannot be read is an Error with its
// field and offset.
package decoders
