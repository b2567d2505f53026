// Package carrier accepts traffic from carriers, over HTTP and from SMPP sessions:
// inbound messages, which its processor passes to their relays, and delivery receipts of
// sent messages.
//
// Each carrier has an adapter that parses its posts into messages and writes the
// response it expects. The rest is common: a valid post is journalled unchanged before
// it is acknowledged, and the processor parses it again. An invalid post is refused with
// 422 and the fields, because it could not be processed later either; a message without
// a matching relay is accepted.
//
// json takes {id, from, to, text} or {id, from, to, data (hex), udh (hex),
// coding: 7|8|16}, optional sent_at (ISO 8601) and network. Parts have a UDH, or
// sar_msg_ref_num, sar_total_segments and sar_segment_seqnum; the processor joins them.
// A character may be split between two parts that are given as data. kannel takes the
// requests of this get-url of its sms-service:
//
//	get-url = "http://penstock:TOKEN@host/inbound/sms/kannel?id=%I&from=%p&to=%P&text=%b&coding=%c&charset=%C&udh=%u&time=%T&smsc=%i"
//
// and is answered with an empty body, because Kannel sends a body to the sender as an
// SMS; with max-messages = 0, it sends none about failures either.
//
// twilio, vonage, infobip, plivo, sinch and android take the posts of these providers, as publicly
// documented. If a provider signs, the signature is verified with the secret of the token that the
// source in the path names, and an unsigned request is refused. Receipts belong to /inbound/dlr,
// which applies them; a receipt that is posted to /inbound/sms, or another post that is not a
// message, is only journalled and acknowledged.
package carrier
