// Package rule raises and clears alarms for the frames of devices and forwards readings. It stores
// rules, alarms and mutes, and creates the deliveries of their actions.
//
// A rule evaluates the uplinks, the events or the silence of some devices of its account. Its
// conditions are expressions of package relay/condition. A frame (Program.step) or the passing of time
// (Program.evaluateDue, Program.evaluateSilence) may change the state of a rule for a device
// (PairState):
//
//	        when holds             when has held for For
//	idle ───────────────▶ waiting ───────────────────────▶ raised ─┐ repeat
//	 ▲ ▲                     │                               │  ▲  │
//	 │ └── when fails ───────┘                               │  └──┘
//	 └───────────── clear holds, or when fails ──────────────┘
//
// Without For, a rule changes from idle to raised. A rule on silence is raised after SilentFor without
// a frame and cleared by the next frame. A rule without a condition has no state: it forwards each
// frame or collects frames for a batch. A frame is evaluated only if it is later than the frame that
// last changed the state.
//
// Service has the operations: Create, Change, Declare, Delete and Try for rules; Alarms, Acknowledge,
// Mute and Unmute for alarms; Evaluate for frames, and Tick for the time. A decision locks the
// states of its pairs in the order of device and rule. It saves states, alarms and deliveries in one
// transaction. Frames that change no state write nothing.
//
// The package refuses rules that do not compile and URLs that the gateway may not call. It omits
// actions beyond the limits per frame and per minute, and actions of muted alarms.
package rule
