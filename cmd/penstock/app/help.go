package app

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/penstock/penstock/cmd/penstock/client"
)

// helpCommand prints the help of penstock or of a command.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command, for example apply or token add."`
}

// Run prints the help of the command.
func (h helpCommand) Run(k *kong.Kong) error {
	node := k.Model.Node
	for _, word := range h.Command {
		i := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == word })
		if i < 0 {
			return usageError{fmt.Errorf("unknown command %q: penstock help lists the commands", strings.Join(h.Command, " "))}
		}
		node = node.Children[i]
	}
	_, _ = k.Parse(append(h.Command, "--help")) // prints the help, and exits with 0
	return nil
}

// manCommand prints the manual page, which is generated from the help texts.
type manCommand struct{}

// Run prints the page in roff with the man macros.
func (manCommand) Run(k *kong.Kong, env client.Environment) error {
	var b strings.Builder
	b.WriteString(".TH PENSTOCK 1 \"\" \"penstock " + roff(env.Version) + "\" \"User Commands\"\n" +
		".SH NAME\npenstock \\- " + roff(k.Model.Help) + "\n.SH SYNOPSIS\n.B penstock\n.I command\n[\\fIargument\\fR ...] [\\fIoption\\fR ...]\n.SH COMMANDS\n")
	manNode(&b, k.Model.Node, "")
	b.WriteString(".SH ENVIRONMENT\nMost settings of the configuration file have a variable; see the documentation of the configuration.\n" +
		".TP\n.B PENSTOCK_SERVER\nURL of the gateway for the commands that call one.\n.TP\n.B PENSTOCK_ADMIN_TOKEN\nThe admin token.\n" +
		".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage.\n")
	_, err := io.WriteString(env.Stdout, b.String())
	return err
}

// manNode writes the subcommands of a node with their arguments and options.
func manNode(b *strings.Builder, n *kong.Node, parent string) {
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		name := strings.TrimSpace(parent + " " + child.Name)
		if len(child.Children) > 0 {
			manNode(b, child, name)
			continue
		}
		fmt.Fprintf(b, ".SS penstock %s", roff(name))
		for _, argument := range child.Positional {
			b.WriteString(" " + roff(argument.Summary()))
		}
		b.WriteString("\n" + roff(child.Help) + "\n")
		for _, argument := range child.Positional {
			fmt.Fprintf(b, ".TP\n.I %s\n%s\n", roff(argument.Summary()), roff(argument.Help))
		}
		for _, flag := range child.Flags {
			fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(flag.String()), roff(flag.Help))
		}
	}
}

// roff escapes a text for roff: backslashes, hyphens, and a control character at its beginning.
func roff(text string) string {
	text = strings.NewReplacer("\\", "\\e", "-", "\\-", "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = "\\&" + text
	}
	return text
}
