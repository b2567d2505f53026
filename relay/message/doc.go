// Package message sends messages of accounts: it validates an order, splits it into parts,
// charges for them and stores each part until a carrier has accepted it and the network has
// reported its delivery (specification 1, SOAP operations and endpoints 1 to 6, events 1
// and 2).
//
// Service has the operations of accounts (Send, Preview, Pending, Delete), Store those of
// the submitter (LeaseDue, Begin, Settle) and of operators (List, Resend), ReceiptHandler
// those of receipts (Receive, SaveCarrierIDs) and the delivery reports.
//
// A Message goes to one destination and has one or more parts; a part costs one credit, is
// an entry of the pending list and has a state of its own. An order is saved, charged and
// queued in one transaction, and queued messages are leased. The state of a part becomes
// Sending before it is submitted to a carrier, so that after a crash a part that may have
// been sent is not repeated.
//
//	removed ◀──Delete── pending ──Begin──▶ sending ──▶ accepted ──▶ buffered ──▶ delivered
//	                     ▲   ▲                │ │ │                      └─────▶ undelivered
//	                     │   └─────retry──────┘ │ └───▶ rejected
//	                     └───Resend─── unknown ◀┘
//
// A receipt may arrive at any time; the states without a following one are final.
//
// A message is a row that never changes (message) and a narrow one that does
// (message_state), so that an attempt rewrites neither the text nor the indexes of numbers.
// A batch is read under its locks, changed here, and written back: two statements, however
// many messages there are.
//
// An invalid order is refused with the names of the parameters (relay.KindInvalid), one
// that exceeds the credit with relay.KindNoCredit.
package message
