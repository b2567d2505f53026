// Package lease has what the workers on records have in common: package queue
// works on deliveries, package submit on messages. Their outcomes are saved in
// batches by a Writer, which keeps them until the store has them.
package lease
