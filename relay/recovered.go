package relay

import (
	"log/slog"
	"runtime/debug"
)

// Recovered calls f, and returns a panic of f as an error after logging it. work names what
// f does. A goroutine that works for a request or a record runs under Recovered: its panic
// would otherwise end the process, whatever its caller recovers from.
func Recovered(work string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("panic", "work", work, "panic", p, "stack", string(debug.Stack()))
			err = Errorf(KindUnexpected, "%s: panic: %v", work, p)
		}
	}()
	return f()
}
