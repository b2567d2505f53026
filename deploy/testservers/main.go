// Command testservers runs a command, such as go test, with servers that all the tests in
// it share: PostgreSQL, Redis, InfluxDB and Postfix. It passes their addresses in the
// environment (see relaytest.Shared), and ends them when the command has ended or when it is
// itself killed. It starts those that the tests of some packages use:
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
	// The command gets an interrupt from the terminal, too, and ends.
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

// imports returns the packages that packages and their tests import, each on a line.
func imports(packages string) string {
	list := exec.CommandContext(context.Background(), "go", append([]string{"list", "-deps", "-test"}, strings.Fields(packages)...)...)
	list.Stderr = os.Stderr
	names, err := list.Output()
	if err != nil {
		os.Exit(1)
	}
	return string(names)
}

// start starts the servers whose packages are imported. One that cannot be started is
// left to the tests that need it, which fail or are skipped.
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

// starter stands for the test that starts a server.
type starter struct{ testing.TB }

func (starter) Helper()             {}
func (starter) Skip(reason ...any)  { end(fmt.Sprint(reason...)) }
func (starter) Fatal(reason ...any) { end(fmt.Sprint(reason...)) }

func (starter) Skipf(format string, args ...any)  { end(fmt.Sprintf(format, args...)) }
func (starter) Fatalf(format string, args ...any) { end(fmt.Sprintf(format, args...)) }

// end ends the goroutine, as it ends that of a test.
func end(reason string) {
	fmt.Fprintln(os.Stderr, "testservers:", reason)
	runtime.Goexit()
}
