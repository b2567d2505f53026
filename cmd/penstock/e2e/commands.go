package e2e

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/app"
	"github.com/penstock/penstock/cmd/penstock/client"
)

// RunTool runs a command of the program with the gateway's settings, in a process of its own,
// and returns its output. A failure ends the test.
func (g *Gateway) RunTool(args ...string) Output {
	g.T.Helper()
	output, err := g.Command(args...).CombinedOutput()
	if err != nil {
		g.T.Fatalf("penstock %s: %v\n%s", args[0], err, output)
	}
	return Output(output)
}

// Output is the output of a command.
type Output string

// Mentions checks that the output contains all words.
func (o Output) Mentions(t *testing.T, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(string(o), w) {
			t.Errorf("output = %s\nwant %q in it", o, w)
		}
	}
}

// ExitCode returns the exit code in err, the error of a Wait or Run of a command; 0 for nil, and -1 if
// err has no exit code.
func ExitCode(err error) int {
	if exitErr, ok := errors.AsType[*exec.ExitError](err); ok {
		return exitErr.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// Result is a command with its exit code and output.
type Result struct {
	Command        string
	Code           int
	Stdout, Stderr string
}

// RunCommand runs a command of the program in this process.
func RunCommand(env []string, stdin string, args ...string) Result {
	var stdout, stderr bytes.Buffer
	code := app.Run(args, client.Environment{Context: context.Background(), Variables: env, Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr, Version: "test"})
	return Result{strings.Join(args, " "), code, stdout.String(), stderr.String()}
}

// RunCommand runs a command of the program against the gateway.
func (g *Gateway) RunCommand(stdin string, args ...string) Result {
	return RunCommand(g.Env, stdin, append(args, "--server", g.URL(), "--admin-token", AdminToken)...)
}

// Mentions checks the exit code and that the output contains all words.
func (r Result) Mentions(t *testing.T, code int, words ...string) {
	t.Helper()
	if r.Code != code {
		t.Errorf("penstock %s: exit code %d, want %d\n%s%s", r.Command, r.Code, code, r.Stdout, r.Stderr)
	}
	for _, w := range words {
		if !strings.Contains(r.Stdout+r.Stderr, w) {
			t.Errorf("penstock %s: output = %s%s\nwant %q in it", r.Command, r.Stdout, r.Stderr, w)
		}
	}
}
