// Package carrier accepts traffic of carriers over HTTP and from SMPP sessions: inbound
// messages, which Processor passes to their relays, and delivery receipts of sent messages,
// which ReceiptProcessor applies.
//
// Each kind of carrier has an adapter, which parses its posts and writes the expected
// response. A valid post is journalled unchanged before it is acknowledged, and the processor
// parses it again. An invalid post is refused with 422 and an error for each invalid field;
// a message without a matching relay is accepted.
//
// json accepts {id, from, to, text} or {id, from, to, data (hex), udh (hex),
// coding: 7|8|16}, optional sent_at (ISO 8601) and network. Parts have a UDH, or
// sar_msg_ref_num, sar_total_segments and sar_segment_seqnum; relay/inbound joins them. If
// parts have data, a character may be split between two of them. kannel accepts the
// requests that a Kannel sms-service makes with this get-url:
//
//	get-url = "http://penstock:TOKEN@host/inbound/sms/kannel?id=%I&from=%p&to=%P&text=%b&coding=%c&charset=%C&udh=%u&time=%T&smsc=%i"
//
// and answers them with an empty body, because Kannel would send a body to the sender as an
// SMS. With max-messages = 0, Kannel does not send its error texts either.
//
// twilio, vonage, infobip, plivo, sinch and android accept the posts of these providers as
// publicly documented. The last segment of the path, the source, names a token. If a provider
// signs, the secret of that token verifies the signature; an unsigned request needs the token. Receipts
// belong to /inbound/dlr. A receipt or another post without messages at /inbound/sms is only
// journalled and acknowledged.
package carrier
