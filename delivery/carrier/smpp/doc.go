// Package smpp keeps binds to carriers' SMSCs (SMPP 3.4) and takes what they
// deliver.
//
// A Client binds as transceiver or receiver, binds again when the link breaks,
// with a growing, jittered pause, and asks with enquire_link whether the other
// side is still there. A deliver_sm or data_sm is answered with ESME_ROK only
// once it has been accepted, which means that it is on disk, and with
// ESME_RX_T_APPN when it could not be: the SMSC keeps it and comes again. Many
// are under way at once, so that one group commit of the journal serves many.
//
// What cannot be read is accepted as it came and answered with the status that
// names the fault; the bind stays up as long as it can be told where the next
// PDU begins. A PDU longer than 1 MiB, or ten in a row whose length makes no
// sense, end that, and the client binds anew.
//
// The PDUs we send are gosmpp's. Its session is not used: it drops the bind at
// the first PDU it cannot read, closes without waiting for what is under way,
// and pauses without jitter (docs/adr tells more).
package smpp
