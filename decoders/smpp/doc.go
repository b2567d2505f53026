// Package smpp parses the PDUs that an SMSC sends to the gateway (SMPP 3.4): the header of
// every PDU, deliver_sm and data_sm with their optional parameters (4.6.1, 4.7.1), delivery
// receipts, and the responses to a submission.
//
// It tolerates common deviations: invalid values of unused fields, addresses longer than
// deliver_sm allows, receipts with missing, additional or reformatted fields, and octets
// after the message that belong to no field (Delivery.Ignored). It refuses a PDU whose fields
// do not fit its length, and the error names the field and the offset.
//
// The gosmpp library, which marshals PDUs, is not used to parse them, because it drops the
// connection if a user data header is malformed, misreads optional
// parameters longer than 32,767 octets, and does not return the octets for the journal.
package smpp
