// Package smpp maintains binds to carriers' SMSCs (SMPP 3.4), submits messages
// and receives deliveries.
//
// A carrier may have several binds; each has a Client, and package submit spreads the
// messages over them. A Client binds as transceiver, receiver or transmitter, binds
// again when the link breaks, with exponential backoff and jitter, and checks the link
// with enquire_link. It answers a deliver_sm or data_sm with ESME_ROK after the PDU was
// accepted, that is, written to disk, and with ESME_RX_T_APPN if the write failed: then
// the SMSC retries. Many PDUs are in flight at once, so that they share group commits of
// the journal.
//
// A PDU that cannot be parsed is accepted unchanged and answered with the status
// of the error; the bind stays up as long as the start of the next PDU
// is known. A PDU longer than 1 MiB, or more than ten consecutive PDUs with an
// invalid length, end the session, and the client binds again.
//
// PDUs are marshalled with gosmpp. Its session is not used: it drops the bind at
// the first PDU that it cannot parse, closes without waiting for PDUs in flight,
// and retries without jitter (docs/adr/0008-smpp-session-of-our-own.md).
package smpp
