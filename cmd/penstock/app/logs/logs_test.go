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

// since returns the lines without their times.
func (l *lines) since() []string {
	var out []string
	for line := range strings.Lines(l.Take()) {
		_, line, _ = strings.Cut(line, " ")
		out = append(out, strings.TrimSpace(line))
	}
	return out
}

func expect(t *testing.T, l *lines, want ...string) {
	t.Helper()
	relaytest.Equal(t, "the log", l.since(), want)
}

func TestARepeatedFaultIsWrittenOnceInTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		log := slog.New(logs.New(&out, logs.Options{}))
		for i := range 100 {
			log.Warn("cannot list", "error", fmt.Errorf("dial from port %d: refused", 40000+i), "count", i)
		}
		expect(t, &out, `level=WARN msg="cannot list" error="dial from port 40000: refused" count=0`)
		time.Sleep(logs.Window - time.Nanosecond)
		synctest.Wait()
		expect(t, &out)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		expect(t, &out, `level=WARN msg="cannot list" error="dial from port 40099: refused" count=99 suppressed=98`)

		log.Warn("cannot list", "error", errors.New("dial from port 1: refused"), "count", 7)
		expect(t, &out) // the summary began another window
		time.Sleep(logs.Window)
		synctest.Wait()
		expect(t, &out, `level=WARN msg="cannot list" error="dial from port 1: refused" count=7`)
		time.Sleep(logs.Window)
		synctest.Wait()
		expect(t, &out)
		log.Warn("cannot list", "error", errors.New("dial from port 2: refused"), "count", 8)
		expect(t, &out, `level=WARN msg="cannot list" error="dial from port 2: refused" count=8`)
		time.Sleep(logs.Window)
	})
}

func TestDifferentFaultsAreAllWritten(t *testing.T) {
	for name, write := range map[string]func(*slog.Logger){
		"another message":    func(l *slog.Logger) { l.Warn("one"); l.Warn("two") },
		"another level":      func(l *slog.Logger) { l.Warn("one"); l.Error("one") },
		"another object":     func(l *slog.Logger) { l.Warn("one", "event", "n-u1"); l.Warn("one", "event", "n-u2") },
		"another error":      func(l *slog.Logger) { l.Warn("one", "error", "refused"); l.Warn("one", "error", "reset") },
		"another bound kind": func(l *slog.Logger) { l.With("kind", "sms").Warn("one"); l.With("kind", "cdr").Warn("one") },
		"another group":      func(l *slog.Logger) { l.WithGroup("a").Warn("one", "k", 1); l.WithGroup("b").Warn("one", "k", 1) },
		"information":        func(l *slog.Logger) { l.Info("request"); l.Info("request") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out lines
				write(slog.New(logs.New(&out, logs.Options{})))
				if got := out.since(); len(got) != 2 {
					t.Errorf("got %q", got)
				}
				time.Sleep(logs.Window)
			})
		})
	}
}

func TestCloseWritesWhatIsSuppressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		h := logs.New(&out, logs.Options{})
		log := slog.New(h)
		for _, id := range []string{"r-1", "r-2", "r-3"} {
			log.Error("broken", "request_id", id)
		}
		log.Error("other")
		out.since()
		h.Close()
		expect(t, &out, `level=ERROR msg=broken request_id=r-3 suppressed=1 request_ids="r-2 r-3"`)
		log.Error("other")
		expect(t, &out, "level=ERROR msg=other")
		h.Close()
		expect(t, &out)
	})
}

func TestManyFaultsAreWrittenAndNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		log := slog.New(logs.New(&out, logs.Options{}))
		for i := range 10_001 {
			log.Warn("quarantined", "event", i)
		}
		log.Warn("quarantined", "event", 10_000)
		log.Warn("quarantined", "event", 9_999)
		if got := len(out.since()); got != 10_002 {
			t.Errorf("%d lines", got)
		}
		time.Sleep(2 * logs.Window)
	})
}

func TestTheLevelChangesWhileTheProgramRuns(t *testing.T) {
	var out lines
	var level slog.LevelVar
	log := slog.New(logs.New(&out, logs.Options{Level: &level}))
	log.Debug("one")
	level.Set(slog.LevelDebug)
	log.Debug("two")
	level.Set(slog.LevelError)
	log.Warn("three")
	expect(t, &out, "level=DEBUG msg=two")
}

func TestLinesHaveTheAttributesOfTheirContext(t *testing.T) {
	type key struct{}
	var out lines
	log := slog.New(logs.New(&out, logs.Options{JSON: true, Context: func(ctx context.Context) []slog.Attr {
		if id, ok := ctx.Value(key{}).(string); ok {
			return []slog.Attr{slog.String("request_id", id)}
		}
		return nil
	}}))
	log.InfoContext(context.WithValue(context.Background(), key{}, "r-1"), "done", "account", 7)
	var got map[string]any
	if err := json.Unmarshal([]byte(out.Take()), &got); err != nil {
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
