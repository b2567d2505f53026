// Package smpp reads what an SMSC sends to us: the header of every PDU, and
// deliver_sm and data_sm whole (SMPP 3.4, 4.6.1 and 4.7.1), with their optional
// parameters, the coding of their text and the delivery receipts among them.
//
// It is tolerant where SMSCs are known to be loose: a wrong value of a field
// that we do not need, longer addresses than deliver_sm allows, receipts with
// missing, further and differently written fields, octets behind the message that
// belong to no field (Delivery.Ignored). It refuses a PDU whose
// fields do not fit its length, with the field and the offset, because what
// would be read then is not what was sent.
//
// The library that speaks the protocol (gosmpp) reads these PDUs too, but drops
// the connection over a user data header that makes no sense, reads optional
// parameters above 32,767 octets wrongly, and keeps no octets; we journal them.
package smpp
