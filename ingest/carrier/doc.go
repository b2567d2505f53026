// Package carrier is the surface that carriers hand inbound messages to over
// HTTP, and the processor that brings them to their relays.
//
// Each carrier has an adapter: what it posts, read into messages, and the
// answer it expects. All else is the same for every one: what can be read is
// journalled as it came, and only then answered; the processor behind reads it
// again. What cannot be read is refused with 422 and the fields, since nobody
// could do anything with it later; a message that no relay takes is accepted.
//
// json takes {id, from, to, text} or {id, from, to, data (hex), udh (hex),
// coding: 7|8|16}, optional sent_at (RFC 3339) and network. Parts are told by
// their UDH, or by sar_msg_ref_num, sar_total_segments and sar_segment_seqnum,
// and joined behind the journal; given as data, characters may lie across their
// borders. kannel takes what
// this get-url of its sms-service sends:
//
//	get-url = "http://penstock:TOKEN@host/inbound/sms/kannel?id=%I&from=%p&to=%P&text=%b&coding=%c&charset=%C&udh=%u&time=%T&smsc=%i"
//
// and is answered with an empty body, which Kannel would send back as an SMS;
// max-messages = 0 keeps it from texting the sender about failures as well.
package carrier
