// Package carrier takes what carriers hand in, over HTTP and from SMPP sessions:
// inbound messages, which its processor passes to their relays, and delivery
// receipts of sent messages.
//
// Each carrier has an adapter that parses its posts into messages and knows the
// response it expects. All else is common: a valid post is journalled unchanged
// before it is acknowledged; the processor behind the journal parses it again. An
// invalid post is refused with 422 and the fields, since it could not be processed
// later either; a message that no relay takes is accepted.
//
// json takes {id, from, to, text} or {id, from, to, data (hex), udh (hex),
// coding: 7|8|16}, optional sent_at (RFC 3339) and network. Parts are told by
// their UDH, or by sar_msg_ref_num, sar_total_segments and sar_segment_seqnum,
// and joined behind the journal; given as data, characters may lie across their
// borders. kannel takes what this get-url of its sms-service sends:
//
//	get-url = "http://penstock:TOKEN@host/inbound/sms/kannel?id=%I&from=%p&to=%P&text=%b&coding=%c&charset=%C&udh=%u&time=%T&smsc=%i"
//
// and is answered with an empty body, which Kannel would send back as an SMS;
// max-messages = 0 keeps it from texting the sender about failures as well.
//
// twilio, vonage, infobip, plivo, sinch and android take what those post, after
// their public documents; where they sign, the signature is verified with the
// secret of the token that the path's source names, and a request without it is
// refused. Receipts belong to /inbound/dlr, which applies them; a receipt that is posted
// to /inbound/sms, or another post that is no message, is only journalled and
// acknowledged.
package carrier
