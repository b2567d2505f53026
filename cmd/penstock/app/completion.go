package app

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/penstock/penstock/cmd/penstock/client"
)

// completionCommand prints a script that completes commands and options.
type completionCommand struct {
	Shell string `arg:"" optional:"" default:"bash" enum:"bash,zsh,fish" help:"bash, zsh or fish; default: bash."`
}

// Run prints the script, which lists the words that may follow each command.
func (c completionCommand) Run(k *kong.Kong, env client.Environment) error {
	script, caseFormat := bashCompletion, "    %q*) words=%q ;;\n"
	switch c.Shell {
	case "zsh":
		script = zshCompletion + script
	case "fish":
		script, caseFormat = fishCompletion, "    case '%s*'\n      string split ' ' -- %q\n"
	}
	var cases strings.Builder
	writeCompletions(&cases, caseFormat, k.Model.Node, " ")
	_, err := fmt.Fprintf(env.Stdout, script, cases.String())
	return err
}

const bashCompletion = `# Completion of penstock.
_penstock() {
  local word words line=" "
  for word in "${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do
    [[ $word == -* ]] || line+="$word "
  done
  case $line in
%s  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _penstock penstock
`

const zshCompletion = `autoload -U +X compinit && compinit
autoload -U +X bashcompinit && bashcompinit
`

const fishCompletion = `# Completion of penstock.
function _penstock
  set -l line " "
  for word in (commandline -opc)[2..]
    string match -q -- '-*' $word; or set line "$line$word "
  end
  switch $line
%s  end
end
complete -c penstock -a '(_penstock)'
`

// writeCompletions writes a case for each command. Subcommands come before their command, because the
// first matching case applies.
func writeCompletions(builder *strings.Builder, caseFormat string, n *kong.Node, line string) {
	var words []string
	for _, child := range n.Children {
		if !child.Hidden {
			writeCompletions(builder, caseFormat, child, line+child.Name+" ")
			words = append(words, child.Name)
		}
	}
	for _, flags := range n.AllFlags(true) {
		for _, f := range flags {
			words = append(words, "--"+f.Name)
		}
	}
	_, _ = fmt.Fprintf(builder, caseFormat, line, strings.Join(words, " "))
}
