package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestCompletion has bash complete lines with the script that penstock prints.
func TestCompletion(t *testing.T) {
	script := command(nil, "", "completion")
	if script.code != 0 {
		t.Fatalf("exit %d: %s", script.code, script.err)
	}
	for line, want := range map[string]string{
		"penstock ap":                         "apply",
		"penstock re":                         "restore recover replay",
		"penstock replay ":                    "events deliveries --help --version",
		"penstock replay events --dry":        "--dry-run",
		"penstock apply --dry":                "--dry-run",
		"penstock apply -f file.yaml --allow": "--allow-removals",
		"penstock status --ad":                "--admin-token",
		"penstock nothing-known":              "",
	} {
		words := strings.Split(line, " ")
		bash := exec.Command("bash", "-c", script.out+`COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _penstock; printf '%s\n' "${COMPREPLY[@]}"`, "bash")
		bash.Args = append(bash.Args, words...)
		out, err := bash.CombinedOutput()
		got := strings.Fields(string(out))
		for _, word := range strings.Fields(want) {
			if !strings.Contains(" "+strings.Join(got, " ")+" ", " "+word+" ") {
				t.Errorf("%q: no %s in %q, %v", line, word, got, err)
			}
		}
		if err != nil || want == "" && len(got) > 0 {
			t.Errorf("%q: %q, %v", line, got, err)
		}
	}
}
