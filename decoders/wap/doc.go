// Package wap writes what a WAP push carries to a phone by short messages: the service
// indication, which requests to open a page (WAP-167 Service Indication, in WBXML 1.2,
// WAP-154), and the notification that a multimedia message waits (m-notification-ind, OMA MMS
// Encapsulation, 6.2). Both travel in a connectionless WSP push (WAP-230, 8.2.4.1) to port
// 2948 (WAP-259, 6.5).
//
// It refuses what a phone could not read back as it was given: addresses with
// anything but printable ASCII, control characters, text that is not UTF-8,
// numbers out of range; always with the field and the offset.
package wap
