package e2e

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/app"
)

// RunTool runs one of the program's commands with the gateway's settings and returns
// what it printed. It must succeed.
func (g *Gateway) RunTool(args ...string) Output {
	g.T.Helper()
	out, err := g.Command(args...).CombinedOutput()
	if err != nil {
		g.T.Fatalf("penstock %s: %v\n%s", args[0], err, out)
	}
	return Output(out)
}

// Output is what a command printed.
type Output string

// Mentions checks that the output contains some words.
func (p Output) Mentions(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(string(p), w) {
			t.Errorf("%s\nwant %q in it", p, w)
		}
	}
}

// RunCommand runs a command of the program against the gateway.
func (g *Gateway) RunCommand(args ...string) (code int, out string) {
	g.T.Helper()
	var b bytes.Buffer
	code = app.Run(append(args, "--server", g.URL(), "--admin-token", AdminToken), app.Environment{Context: g.T.Context(), Stdin: strings.NewReader(""), Stdout: &b, Stderr: &b})
	return code, b.String()
}

// ExitCode is that of a process that has ended.
func ExitCode(err error) int {
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return failed.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// Result is the end of a command.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// RunCommand runs one command of the program in this process.
func RunCommand(env []string, stdin string, args ...string) Result {
	var out, errs bytes.Buffer
	code := app.Run(args, app.Environment{Context: context.Background(), Variables: env, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Version: "test"})
	return Result{code, out.String(), errs.String()}
}
