// Package provisioning changes SIMs in the network of their operator: it activates,
// suspends, unsuspends and terminates them, changes their services, and assigns them
// to other subscribers (document 2 of the specification).
//
// Each change is a job. The job reserves the SIM, sends the operator a command with the job's
// id until the operator reports the end, and changes the SIM in the same transaction as it
// settles:
//
//	reserved ──Command──▶ pending ──report──▶ settled ──event, limits──▶ completed
//	    │                    │ ▲ └─ repeated    │
//	    │                    └─┘                └── the operator refused ──▶ failed
//	    └── the SIM was deleted or reset, or the report is late ───────────▶ failed
//
// A reassignment changes SIMs in batches, without the operator.
//
// Actions has the operations Activate, Change, SetService, Suspend and Reassign, the lists of
// jobs, and the runners of the jobs. Operator is implemented by delivery/operator.
//
// A SIM has at most one job in progress. The package refuses an action that is not eligible in
// the SIM's state. The end of a job and a changed state are sent to the account's callback.
package provisioning
