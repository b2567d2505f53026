package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

type applyCommand struct {
	File  string   `short:"f" required:"" help:"The inventory, YAML or JSON; - is the standard input." placeholder:"FILE"`
	Reset []string `help:"Set what lives on through REST to what the document says: credit, sims, relays, rules."`
	Prune bool     `help:"Remove what an earlier inventory declared and this one omits."`
	adminFlags
}

// Run puts the inventory to a running gateway and prints what it did, or every
// mistake.
func (a applyCommand) Run(w world) error {
	data, err := a.read(w)
	if err != nil {
		return err
	}
	q := url.Values{}
	if len(a.Reset) > 0 {
		q.Set("reset", strings.Join(a.Reset, ","))
	}
	if a.Prune {
		q.Set("prune", "true")
	}
	body, err := a.ask(w, "the inventory", http.MethodPut, "/admin/inventory?"+q.Encode(), data)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.stdout, "%s\n", body)
	return err
}

func (a applyCommand) read(w world) ([]byte, error) {
	if a.File == "-" {
		return io.ReadAll(io.LimitReader(w.stdin, 8<<20+1))
	}
	return os.ReadFile(a.File)
}
