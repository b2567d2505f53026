// Package provisioning changes SIMs in the network of their operator: it activates,
// suspends, unsuspends and terminates them, changes their services, and assigns them
// to other subscribers (document 2 of the specification).
//
// Each is a job. It reserves the SIM, sends the operator a command with the job's id
// until the operator reports the end, and then changes the SIM, once. A SIM has at
// most one job in progress. The end of a job, and a changed state, are reported to the
// account's callback.
package provisioning
