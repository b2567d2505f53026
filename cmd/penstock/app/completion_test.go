package app

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/relay/relaytest"
)

// wantedWords maps command lines to the words that must be offered as completions.
func wantedWords() map[string]string {
	return map[string]string{
		"penstock ap":                         "apply",
		"penstock re":                         "restore recover replay",
		"penstock replay ":                    "events deliveries --help --version",
		"penstock replay events --dry":        "--dry-run",
		"penstock apply --dry":                "--dry-run",
		"penstock apply -f file.yaml --allow": "--allow-removals",
		"penstock status --ad":                "--admin-token",
		"penstock nothing-known":              "",
	}
}

// TestCompletion completes lines in each shell with the script that penstock prints.
func TestCompletion(t *testing.T) {
	for shell, complete := range map[string]func(t *testing.T, script, line string) []string{"bash": completeInBash, "fish": completeInFish} {
		t.Run(shell, func(t *testing.T) {
			script := completionScript(t, shell)
			for line, want := range wantedWords() {
				got := complete(t, script, line)
				for _, word := range strings.Fields(want) {
					if !slices.Contains(got, word) {
						t.Errorf("%q: completions = %q, want %s among them", line, got, word)
					}
				}
				if want == "" && len(got) > 0 {
					t.Errorf("%q: completions = %q, want none", line, got)
				}
			}
		})
	}
}

// completionScript returns the script that penstock prints for a shell.
func completionScript(t *testing.T, shell string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := Run([]string{"completion", shell}, client.Environment{Context: t.Context(), Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}); code != exitDone {
		t.Fatalf("exit code = %d, want 0: %s", code, stderr.String())
	}
	return stdout.String()
}

// requireProgram fails the test if a program is missing, or skips the test if PENSTOCK_TEST_SKIP_REAL is 1.
func requireProgram(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err == nil {
		return
	}
	if os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
		t.Skipf("skipped: %s is not installed, and PENSTOCK_TEST_SKIP_REAL=1", name)
	}
	t.Fatalf("%s is not installed: run make deps", name)
}

func completeInBash(t *testing.T, script, line string) []string {
	t.Helper()
	bash := exec.Command("bash", "-c", script+`COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _penstock; printf '%s\n' "${COMPREPLY[@]}"`, "bash")
	bash.Args = append(bash.Args, strings.Split(line, " ")...)
	return wordsOf(t, bash)
}

func completeInFish(t *testing.T, script, line string) []string {
	t.Helper()
	requireProgram(t, "fish")
	return wordsOf(t, exec.Command("fish", "--no-config", "-c", script+"complete -C '"+line+"'"))
}

func wordsOf(t *testing.T, cmd *exec.Cmd) []string {
	t.Helper()
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, output)
	}
	return strings.Fields(string(output))
}

// TestCompletionInZsh types a line and a tab into an interactive zsh.
func TestCompletionInZsh(t *testing.T) {
	requireProgram(t, "zsh")
	file := filepath.Join(t.TempDir(), "completion.zsh")
	relaytest.NoError(t, os.WriteFile(file, []byte(completionScript(t, "zsh")), 0o600))
	const session = `
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1='ready> '; penstock() { print got: }; source $1; print loaded"
zpty -r shell seen '*loaded*ready> '
zpty -w shell $'penstock replay events --dry\t'
zpty -r shell seen '*got:*' && print -r -- "$seen"
zpty -d shell`
	zsh := exec.Command("timeout", "60", "zsh", "-f", "-c", session, "zsh", file)
	zsh.Env = append(os.Environ(), "HOME="+t.TempDir(), "ZDOTDIR="+t.TempDir(), "TERM=dumb")
	if output := strings.Join(wordsOf(t, zsh), " "); !strings.Contains(output, "penstock replay events --dry-run") {
		t.Errorf("output = %q, want the completed --dry-run", output)
	}
}
