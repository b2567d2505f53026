// Package provisioning changes SIMs in the network of their operator: it activates,
// suspends, unsuspends and terminates them, changes their services, and assigns them
// to other subscribers.
//
// Each change is a job. The job reserves the SIM and sends the operator a command with the job's
// id until the operator reports the result. Then the job is settled: the result and the change of
// the SIM are saved in one transaction. At last the job sends the event about the SIM's new state,
// and enforces the limits of an activated SIM:
//
//	reserved ──Command──▶ pending ──report──▶ settled ─────finish──────▶ completed
//	    │                    │ ▲ └─ repeated    │
//	    │                    └─┘                └── the operator refused ──▶ failed
//	    └── the SIM was deleted or reset, or the report is late ───────────▶ failed
//
// A reassignment changes SIMs in batches, without the operator.
//
// Actions has the operations Activate, Change, SetService, Suspend and Reassign, the lists of
// jobs, and the runners of the jobs. Package delivery/operator implements Operator.
//
// A SIM has at most one job in progress. The package refuses an action for which the SIM is not in
// an eligible state. The account's callback URL gets an event when a job ends and when the state of
// a SIM changes.
package provisioning
