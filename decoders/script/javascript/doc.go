// Package javascript runs the codec javascript: decoders from public
// device repositories and from vendors, unchanged. It follows the LoRa
// Alliance's payload codec API (TS013), which The Things Stack and ChirpStack
// v4 use, and supports older forms:
//
//	decodeUplink({bytes, fPort, recvTime, variables}) → {data, errors, warnings}
//	normalizeUplink({data})                           → {data, errors, warnings}
//	Decode(fPort, bytes, variables)                   → the values
//	Decoder(bytes, port, uplink_info)                 → the values
//
// The functions may be global, members of exports or module.exports, or the
// exports of an ES module. The first of decodeUplink, Decode and Decoder that exists is
// called, and then normalizeUplink.
//
// A codec has access to its frame only. Each call has a realm of its own, made from
// the compiled program, so that no state remains after the call. In the realm, the clock stops
// at the time of the frame, the time zone is UTC, and Math.random returns the same numbers for
// the same frame, so that a replay has the same result.
//
// The interpreter cannot limit memory, and it cannot interrupt a built-in function. This
// package does not protect against that: delivery/codec runs codecs in processes that may end.
package javascript
