package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCommand prints a script that completes commands and options in bash.
type completionCommand struct{}

// Run prints the script, which has the words that may follow each command.
func (completionCommand) Run(k *kong.Kong, w world) error {
	var cases strings.Builder
	completions(&cases, k.Model.Node, " ")
	_, err := fmt.Fprintf(w.stdout, completionScript, cases.String())
	return err
}

const completionScript = `# Completion of penstock for bash.
_penstock() {
  local word words line=" "
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -* ]] || line+="$word "
  done
  case $line in
%s  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _penstock penstock
`

// completions writes a case for each command, the longest before those that it begins
// with.
func completions(out *strings.Builder, n *kong.Node, line string) {
	var words []string
	for _, child := range n.Children {
		if !child.Hidden {
			completions(out, child, line+child.Name+" ")
			words = append(words, child.Name)
		}
	}
	for _, flags := range n.AllFlags(true) {
		for _, f := range flags {
			words = append(words, "--"+f.Name)
		}
	}
	_, _ = fmt.Fprintf(out, "    %q*) words=%q ;;\n", line, strings.Join(words, " "))
}
