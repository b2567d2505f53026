// Package javascript runs the codec javascript: the decoders that the public
// device repositories and the vendors publish, unchanged. It follows the LoRa
// Alliance's payload codec API (TS013), which The Things Stack and ChirpStack
// v4 share, and the older forms:
//
//	decodeUplink({bytes, fPort, recvTime, variables}) → {data, errors, warnings}
//	normalizeUplink({data})                           → {data, errors, warnings}
//	Decode(fPort, bytes, variables)                   → the values
//	Decoder(bytes, port, uplink_info)                 → the values
//
// They may be global functions, members of exports or module.exports, or the
// exports of an ES module. The first of that list that there is decodes.
//
// A codec can read its frame and nothing else. Each call has a realm of its own, made from
// the compiled program, so that nothing lasts from one call to the next. Its clock stands at
// the time of the frame, its time zone is UTC and Math.random repeats itself, so that a
// replay gives the same values.
//
// The interpreter has no limit of memory, and it cannot end a function of its own
// that runs long. This package has no guards against that: delivery/codec runs codecs
// in processes that end in place of the gateway.
package javascript
