// Package message stores the messages that accounts send: it validates an order, splits it
// into parts, charges for them and tracks each part until a carrier has accepted it and the
// network has reported its delivery.
//
// Service has the operations of accounts (Send, Preview, Pending, Delete), Store those of
// the submitter (LeaseDue, MarkSending, Settle) and of operators (List, Resend), ReceiptHandler
// those of receipts (Receive, SaveCarrierIDs) and the delivery reports.
//
// A Message has one destination and one or more parts. A part costs one credit and has its
// own state and id. An order is saved, charged and queued in one transaction. A queued
// message is leased to the process that submits it. The state of a part becomes Sending
// before it is submitted to a carrier, so that after a crash a part that may have been sent
// is repeated only if the carrier recognises duplicates.
//
//	removed ◀──Delete── pending ──MarkSending──▶ sending ──▶ accepted ──▶ buffered ──▶ delivered
//	                     ▲   ▲                │ │ │                      └─────▶ undelivered
//	                     │   └─────retry──────┘ │ └───▶ rejected
//	                     └───Resend─── unknown ◀┘
//
// A pending part without a carrier is rejected; one whose record cannot be decrypted, or that was due
// when the database was restored, is unknown. A receipt may arrive at any time. The states
// without a following one are final.
//
// A message has a row in the table message, which never changes, and a narrow row in
// message_state, so that a change of state rewrites neither the text nor the indexes of
// numbers. Two statements change the states of any number of messages: the first locks and
// reads their rows, the second writes the changed rows back.
package message
