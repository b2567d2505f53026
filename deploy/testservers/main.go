// Command testservers runs a command, such as go test, with servers that all its tests share:
// PostgreSQL, Redis, InfluxDB and Postfix. It passes their addresses in the environment (see
// relaytest.Shared). The servers end with testservers, even if it is killed. The first argument
// lists packages; only servers that their tests use are started:
//
//	testservers "./relay/... ./ingest/..." go test ./relay/... ./ingest/...
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/penstock/penstock/delivery/email/smtptest"
	"github.com/penstock/penstock/delivery/influx/influxtest"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/db/dbtest"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, `usage: testservers "PACKAGES" COMMAND [ARGUMENT...]`)
		os.Exit(2)
	}
	// The terminal sends an interrupt to the command, too. Wait for its end.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	start(imports(os.Args[1]))
	cmd := exec.CommandContext(context.Background(), os.Args[2], os.Args[3:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "testservers:", err)
		os.Exit(1)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	if err := cmd.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "testservers:", err)
		os.Exit(1)
	}
}

// imports returns the dependencies of packages and of their tests, one per line.
func imports(packages string) string {
	list := exec.CommandContext(context.Background(), "go", append([]string{"list", "-deps", "-test"}, strings.Fields(packages)...)...)
	list.Stderr = os.Stderr
	names, err := list.Output()
	if err != nil {
		os.Exit(1)
	}
	return string(names)
}

// start starts the servers whose test packages are imported. If a server cannot be started, the
// tests that need it try again, and fail or are skipped.
func start(imported string) {
	for name, share := range map[string]func(testing.TB){
		"/relay/db/dbtest":            func(t testing.TB) { dbtest.Shared(t) },
		"/relay/cache/redistest":      func(t testing.TB) { redistest.Shared(t) },
		"/delivery/influx/influxtest": func(t testing.TB) { influxtest.Shared(t) },
		"/delivery/email/smtptest":    func(t testing.TB) { smtptest.Shared(t) },
	} {
		if strings.Contains(imported, name+"\n") {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				share(starter{})
			}()
			<-ended
		}
	}
}

// starter implements the methods of a test that Shared calls.
type starter struct{ testing.TB }

func (starter) Helper()             {}
func (starter) Skip(reason ...any)  { end(fmt.Sprint(reason...)) }
func (starter) Fatal(reason ...any) { end(fmt.Sprint(reason...)) }

func (starter) Skipf(format string, args ...any)  { end(fmt.Sprintf(format, args...)) }
func (starter) Fatalf(format string, args ...any) { end(fmt.Sprintf(format, args...)) }

// end prints the reason and ends the goroutine, as Skip and Fatal of a test do.
func end(reason string) {
	fmt.Fprintln(os.Stderr, "testservers:", reason)
	runtime.Goexit()
}
