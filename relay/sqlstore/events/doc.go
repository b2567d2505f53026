// Package events keeps in SQL what became of the events of a node that were set
// aside. Marks is an event.Marks; the marks of any node can be read and changed
// from every gateway, by a Marks of that node.
package events
