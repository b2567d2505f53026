package relay

import (
	"log/slog"
	"runtime/debug"
)

// Recovered calls f. If f panics, Recovered logs the panic and returns it as an error. task names f in
// both. A goroutine that handles a request or a record uses Recovered, because its panic would
// otherwise end the process.
func Recovered(task string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("panic", "work", task, "panic", p, "stack", string(debug.Stack()))
			err = Errorf(KindUnexpected, "%s: panic: %v", task, p)
		}
	}()
	return f()
}
