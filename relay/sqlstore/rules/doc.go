// Package rules keeps rules, their states for devices, alarms, and the
// frames that are collected for batches. It implements rule.Store.
//
// A decision locks what stands between its rules and devices, in the order of device
// and rule, before deliveries are created. Steady state writes nothing.
package rules
