package logs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/cmd/penstock/app/logs"
	"github.com/penstock/penstock/relay/relaytest"
)

// lines is a writer that collects the lines of a log.
type lines struct{ relaytest.Buffer }

// takeLines removes all lines and returns them without their times.
func (l *lines) takeLines() []string {
	var texts []string
	for line := range strings.Lines(l.Take()) {
		_, line, _ = strings.Cut(line, " ")
		texts = append(texts, strings.TrimSpace(line))
	}
	return texts
}

func expect(t *testing.T, l *lines, want ...string) {
	t.Helper()
	relaytest.Equal(t, "the log", l.takeLines(), want)
}

func TestRepeatedFaultIsWrittenOncePerWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written lines
		log := slog.New(logs.New(&written, logs.Options{}))
		for i := range 100 {
			log.Warn("cannot list", "error", fmt.Errorf("dial from port %d: refused", 40000+i), "count", i)
		}
		expect(t, &written, `level=WARN msg="cannot list" error="dial from port 40000: refused" count=0`)
		time.Sleep(logs.Window - time.Nanosecond)
		synctest.Wait()
		expect(t, &written)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		expect(t, &written, `level=WARN msg="cannot list" error="dial from port 40099: refused" count=99 suppressed=98`)

		log.Warn("cannot list", "error", errors.New("dial from port 1: refused"), "count", 7)
		expect(t, &written) // the summary began the next window
		time.Sleep(logs.Window)
		synctest.Wait()
		expect(t, &written, `level=WARN msg="cannot list" error="dial from port 1: refused" count=7`)
		time.Sleep(logs.Window)
		synctest.Wait()
		expect(t, &written)
		log.Warn("cannot list", "error", errors.New("dial from port 2: refused"), "count", 8)
		expect(t, &written, `level=WARN msg="cannot list" error="dial from port 2: refused" count=8`)
		time.Sleep(logs.Window)
	})
}

func TestDifferentFaultsAreNotSuppressed(t *testing.T) {
	for name, write := range map[string]func(*slog.Logger){
		"another message":                       func(l *slog.Logger) { l.Warn("one"); l.Warn("two") },
		"another level":                         func(l *slog.Logger) { l.Warn("one"); l.Error("one") },
		"another object":                        func(l *slog.Logger) { l.Warn("one", "event", "n-u1"); l.Warn("one", "event", "n-u2") },
		"another error":                         func(l *slog.Logger) { l.Warn("one", "error", "refused"); l.Warn("one", "error", "reset") },
		"another value of an attribute of With": func(l *slog.Logger) { l.With("kind", "sms").Warn("one"); l.With("kind", "cdr").Warn("one") },
		"another group":                         func(l *slog.Logger) { l.WithGroup("a").Warn("one", "k", 1); l.WithGroup("b").Warn("one", "k", 1) },
		"information":                           func(l *slog.Logger) { l.Info("request"); l.Info("request") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var written lines
				write(slog.New(logs.New(&written, logs.Options{})))
				if got := written.takeLines(); len(got) != 2 {
					t.Errorf("lines = %q, want 2", got)
				}
				time.Sleep(logs.Window)
			})
		})
	}
}

func TestCloseWritesTheSummaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written lines
		h := logs.New(&written, logs.Options{})
		log := slog.New(h)
		for _, id := range []string{"r-1", "r-2", "r-3"} {
			log.Error("broken", "request_id", id)
		}
		log.Error("other")
		written.takeLines()
		h.Close()
		expect(t, &written, `level=ERROR msg=broken request_id=r-3 suppressed=1 request_ids="r-2 r-3"`)
		log.Error("other")
		expect(t, &written, "level=ERROR msg=other")
		h.Close()
		expect(t, &written)
	})
}

func TestFaultsBeyondTheLimitAreNotSuppressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written lines
		log := slog.New(logs.New(&written, logs.Options{}))
		for i := range 10_001 {
			log.Warn("quarantined", "event", i)
		}
		log.Warn("quarantined", "event", 10_000)
		log.Warn("quarantined", "event", 9_999)
		if got := len(written.takeLines()); got != 10_002 {
			t.Errorf("got %d lines, want 10002", got)
		}
		time.Sleep(2 * logs.Window)
	})
}

func TestTheLevelChangesWhileTheProgramRuns(t *testing.T) {
	var written lines
	var level slog.LevelVar
	log := slog.New(logs.New(&written, logs.Options{Level: &level}))
	log.Debug("one")
	level.Set(slog.LevelDebug)
	log.Debug("two")
	level.Set(slog.LevelError)
	log.Warn("three")
	expect(t, &written, "level=DEBUG msg=two")
}

func TestLinesHaveTheAttributesOfTheirContext(t *testing.T) {
	type contextKey struct{}
	var written lines
	log := slog.New(logs.New(&written, logs.Options{JSON: true, Context: func(ctx context.Context) []slog.Attr {
		if id, ok := ctx.Value(contextKey{}).(string); ok {
			return []slog.Attr{slog.String("request_id", id)}
		}
		return nil
	}}))
	log.InfoContext(context.WithValue(context.Background(), contextKey{}, "r-1"), "done", "account", 7)
	var got map[string]any
	if err := json.Unmarshal([]byte(written.Take()), &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "time")
	relaytest.Equal(t, "the line", got, map[string]any{"level": "INFO", "msg": "done", "account": 7.0, "request_id": "r-1"})
}

func BenchmarkSuppressed(b *testing.B) {
	log := slog.New(logs.New(&lines{}, logs.Options{}))
	err := errors.New("dial tcp 127.0.0.1:5432: connection refused")
	b.ReportAllocs()
	for b.Loop() {
		log.Warn("cannot list due records", "kind", "sms", "error", err)
	}
}
