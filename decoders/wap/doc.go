// Package wap encodes WAP pushes, which are sent to phones in short messages: the service
// indication, which offers the user a page (WAP-167 Service Indication, in WBXML 1.2, WAP-154), and
// the notification of a multimedia message (m-notification-ind, OMA MMS Encapsulation, 6.2). Both
// are sent in a connectionless WSP push (WAP-230, 8.2.4.1) to port 2948 (WAP-259, 6.5).
//
// It refuses values that a phone could not decode: addresses that are not
// printable ASCII, control characters, invalid UTF-8,
// numbers out of range. The error names the field and the offset.
package wap
