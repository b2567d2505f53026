package documents

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// block is a ```console block of a document, with its commands and their replies.
type block struct {
	line  int
	steps []step
}

// step is a command with the documented reply.
type step struct {
	line    int
	command string
	reply   []string
}

// readConsole returns the blocks to run: blocks with the tag console that have no comment
// <!-- not run: reason --> before them. A command begins with "$ ". It continues after a backslash at the
// end of a line, and on lines that begin with "> ".
func readConsole(t *testing.T, document string) []block {
	t.Helper()
	var blocks []block
	skip, inBlock := false, false
	for n, line := range strings.Split(document, "\n") {
		switch {
		case !inBlock && strings.HasPrefix(line, "<!-- not run:"):
			skip = true
		case !inBlock && strings.TrimSpace(line) == "```console":
			inBlock = true
			if !skip {
				blocks = append(blocks, block{line: n + 1})
			}
		case inBlock && strings.TrimSpace(line) == "```":
			inBlock, skip = false, false
		case !inBlock && strings.TrimSpace(line) != "":
			skip = false
		case inBlock && !skip:
			blocks[len(blocks)-1].add(t, n+1, line)
		}
	}
	return blocks
}

func (b *block) add(t *testing.T, n int, line string) {
	t.Helper()
	command, isCommand := strings.CutPrefix(line, "$ ")
	if isCommand {
		b.steps = append(b.steps, step{line: n, command: command})
		return
	}
	if len(b.steps) == 0 {
		t.Fatalf("line %d: %q is before the first command", n, line)
	}
	lastStep := &b.steps[len(b.steps)-1]
	continuation, isContinued := strings.CutPrefix(line, "> ")
	switch {
	case len(lastStep.reply) == 0 && isContinued:
		lastStep.command += "\n" + continuation
	case len(lastStep.reply) == 0 && strings.HasSuffix(lastStep.command, "\\"):
		lastStep.command += "\n" + line
	default:
		lastStep.reply = append(lastStep.reply, line)
	}
}

func TestReadmeKeepsItsPromises(t *testing.T) {
	t.Parallel()
	blocks := readConsole(t, e2e.RepositoryFile(t, "README.md"))
	if len(blocks) == 0 {
		t.Fatal("README.md has no ```console block to run")
	}
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%s, which the commands of the README need, is missing: %v", tool, err)
		}
	}
	reserveSink(t)
	r := newReader(t)
	r.runBlocks(blocks)
	if r.gateway == nil {
		t.Error("no block starts the gateway with make run")
	}
}

// reserveSink waits until no test of another checkout uses 127.0.0.1:9099, the address of the endpoint in
// the README and in the demo account.
func reserveSink(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile("/tmp/penstock-test-9099.lock", os.O_CREATE|os.O_RDWR, 0o666)
	relaytest.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	relaytest.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
}

// reader runs the commands of a document in one shell.
type reader struct {
	t           *testing.T
	dir         string
	listen      string // address that replaces 127.0.0.1:8080
	stdin       *os.File
	outputLines <-chan string
	gateway     *exec.Cmd
	exited      chan struct{}
	logs        *e2e.Transcript
}

// newReader returns a reader in a folder that looks like a checkout: it has links to the files of the
// repository, and a bin/penstock that runs this test binary as the program.
func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{t: t, dir: t.TempDir(), listen: porttest.Address(t), logs: &e2e.Transcript{}}
	root := relaytest.Must(filepath.Abs(e2e.Root(t)))(t)
	for _, e := range relaytest.Must(os.ReadDir(root))(t) {
		if name := e.Name(); name != "bin" && name != "data" && name != ".git" {
			relaytest.NoError(t, os.Symlink(filepath.Join(root, name), filepath.Join(r.dir, name)))
		}
	}
	relaytest.NoError(t, os.Mkdir(filepath.Join(r.dir, "bin"), 0o755))
	program := fmt.Sprintf("#!/bin/sh\n%s=1 PENSTOCK_LISTEN=${PENSTOCK_LISTEN-%s} exec %s \"$@\"\n", e2e.ActAsProgram, r.listen, os.Args[0])
	relaytest.NoError(t, os.WriteFile(filepath.Join(r.dir, "bin", "penstock"), []byte(program), 0o755))
	r.shell()
	return r
}

// shell starts the shell that runs every command.
func (r *reader) shell() {
	r.t.Helper()
	commands, stdin, err := os.Pipe()
	relaytest.NoError(r.t, err)
	stdout, output, err := os.Pipe()
	relaytest.NoError(r.t, err)
	cmd := exec.Command("bash", "--noprofile", "--norc")
	cmd.Dir, cmd.Env = r.dir, e2e.BareEnvironment()[1:]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = commands, output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that background commands are killed with the shell
	relaytest.NoError(r.t, cmd.Start())
	_, _ = commands.Close(), output.Close()
	lines := make(chan string, 1024)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			lines <- s.Text()
		}
	}()
	r.stdin, r.outputLines = stdin, lines
	r.t.Cleanup(func() {
		_ = stdin.Close()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = stdout.Close()
	})
}

// runBlocks runs the steps of blocks, one after the other.
func (r *reader) runBlocks(blocks []block) {
	r.t.Helper()
	for _, b := range blocks {
		for _, st := range b.steps {
			r.runStep(st)
		}
	}
}

// runStep runs a command and compares its output with the documented reply.
func (r *reader) runStep(st step) {
	r.t.Helper()
	if m := regexp.MustCompile(`^((?:\w+=\S+ +)*)make run\b`).FindStringSubmatch(st.command); m != nil {
		r.start(strings.Fields(m[1]))
		r.checkLog(st)
		return
	}
	want := trimLines(strings.Split(r.replaceAddress(strings.Join(st.reply, "\n")), "\n"))
	deadline := time.Now().Add(relaytest.Patience)
	got := r.run(st)
	for isReadOnly(st.command) && !e2e.LinesMatch(want, got) && time.Now().Before(deadline) {
		got = r.run(st)
	}
	if !e2e.LinesMatch(want, got) {
		r.t.Errorf("line %d: output of %s =\n%s\nwant\n%s\nthe gateway's log:\n%s",
			st.line, st.command, strings.Join(got, "\n"), strings.Join(want, "\n"), r.logs.Tail(15))
	}
}

// isReadOnly reports whether a command only reads: a request with curl, or with the functions api and
// admin of docs/api. runStep repeats a command that only reads until the output is right, because the
// gateway may still process an earlier post.
func isReadOnly(command string) bool {
	name, _, _ := strings.Cut(command, " ")
	return slices.Contains([]string{"curl", "api", "admin"}, name) && !regexp.MustCompile(` (--json|--data\S*|-d|-X|-F|-T)\b`).MatchString(command)
}

// run runs a command and returns its output.
func (r *reader) run(st step) []string {
	r.t.Helper()
	const mark = "--- the reply ends here ---"
	_, err := fmt.Fprintf(r.stdin, "%s\nprintf '\\n%%s\\n' '%s'\n", r.replaceAddress(st.command), mark)
	relaytest.NoError(r.t, err)
	var got []string
	timeout := time.After(relaytest.Patience)
	for {
		select {
		case line, ok := <-r.outputLines:
			if !ok || line == mark {
				return trimLines(got)
			}
			got = append(got, strings.TrimRight(line, "\r"))
		case <-timeout:
			r.t.Fatalf("line %d: timeout of %s; output:\n%s", st.line, st.command, strings.Join(got, "\n"))
		}
	}
}

// replaceAddress replaces the documented address of the gateway in a text by the address in this test.
func (r *reader) replaceAddress(text string) string {
	return strings.NewReplacer("127.0.0.1:8080", r.listen, "localhost:8080", r.listen).Replace(text)
}

// trimLines returns the lines of a reply without empty lines at the beginning and the end.
func trimLines(lines []string) []string {
	text := strings.Trim(strings.Join(lines, "\n"), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// start stops the running gateway, if any, and runs a gateway in the background. make run does so in the
// foreground.
func (r *reader) start(settings []string) {
	r.t.Helper()
	if r.gateway != nil {
		_ = r.gateway.Process.Signal(os.Interrupt)
		<-r.exited
	}
	r.gateway = exec.Command(filepath.Join(r.dir, "bin", "penstock"), "serve")
	r.gateway.Dir = r.dir
	r.gateway.Env = append(e2e.BareEnvironment()[1:], settings...)
	ready := &e2e.AddressWatcher{Log: r.logs, URL: make(chan string, 1)}
	r.gateway.Stdout, r.gateway.Stderr = ready, ready
	relaytest.NoError(r.t, r.gateway.Start())
	exited := make(chan struct{})
	r.exited = exited
	go func(cmd *exec.Cmd) { _ = cmd.Wait(); close(exited) }(r.gateway)
	r.t.Cleanup(func() { _ = r.gateway.Process.Kill(); <-r.exited })
	select {
	case <-ready.URL:
	case <-exited:
		r.t.Fatalf("the gateway exited:\n%s", r.logs)
	case <-time.After(relaytest.Patience):
		r.t.Fatalf("the gateway is not ready:\n%s", r.logs)
	}
}

// checkLog checks that the log of the gateway has the documented lines, in order. It ignores the output of
// make.
func (r *reader) checkLog(st step) {
	r.t.Helper()
	log := strings.Split(r.logs.String(), "\n")
	for _, line := range st.reply {
		if !strings.Contains(line, "level=") && !strings.Contains(line, "msg=") {
			continue
		}
		i := 0
		for i < len(log) && !e2e.LineMatches(r.replaceAddress(line), log[i]) {
			i++
		}
		if i == len(log) {
			r.t.Errorf("line %d: want the log line\n%s\nhere, log =\n%s", st.line, line, r.logs)
			return
		}
		log = log[i+1:]
	}
}
