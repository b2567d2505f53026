// Package sim holds the SIMs of an account and what belongs to them:
// subscribers, pools, recipients and monthly limits, after document 2 of the
// specification.
//
// A SIM is known by its ICCID and belongs to one account, at most one pool and
// at most one subscriber. Its state changes through jobs only (package
// provisioning):
//
//	pending → active → suspended → active, each of them → terminated
//
// What another account has does not exist here. A request about several SIMs is
// done whole or refused whole.
// PIN and PUK are shown to the account's holder only, and never logged.
package sim
