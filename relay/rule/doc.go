// Package rule decides what follows from the frames of devices: an alarm that is
// raised and cleared, and the deliveries that say so or forward the readings.
//
// A rule looks at the uplinks, the events or the silence of some devices of its
// account. Its conditions are expressions of package relay/condition.
//
// A decision locks the states of its rules for devices, in the order of device and rule,
// before deliveries are created. The steady state writes nothing.
package rule
