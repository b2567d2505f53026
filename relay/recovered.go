package relay

import (
	"log/slog"
	"runtime/debug"
)

// Recovered calls f. If f panics, Recovered logs the panic and returns it as an error. work names the
// task of f. A goroutine that works for a request or a record uses Recovered, because its panic would
// otherwise end the process.
func Recovered(work string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("panic", "work", work, "panic", p, "stack", string(debug.Stack()))
			err = Errorf(KindUnexpected, "%s: panic: %v", work, p)
		}
	}()
	return f()
}
