package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/config"
)

type applyCommand struct {
	File       string   `short:"f" required:"" help:"The inventory, YAML or JSON; - is the standard input." placeholder:"FILE"`
	Server     string   `help:"The gateway; default: where the configuration says it listens." placeholder:"URL"`
	AdminToken string   `help:"The admin token; default: the configuration's, or the one in the data directory." placeholder:"T"`
	Reset      []string `help:"Set what lives on through REST to what the document says: credit, sims, relays."`
	Prune      bool     `help:"Remove what an earlier inventory declared and this one omits."`
}

// Run puts the inventory to a running gateway and prints what it did, or every
// mistake.
func (a applyCommand) Run(w world) error {
	data, err := a.read(w)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	req, err := a.request(ctx, w, data)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return refusal(resp.Status, body)
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

func (a applyCommand) request(ctx context.Context, w world, data []byte) (*http.Request, error) {
	c, err := config.Load("", w.environ)
	if err != nil {
		return nil, err
	}
	if a.Server == "" {
		a.Server = "http://" + c.Listen
	}
	if a.AdminToken == "" {
		a.AdminToken = c.AdminToken
	}
	if a.AdminToken == "" {
		kept, err := os.ReadFile(filepath.Join(c.DataDir, adminTokenFile))
		if err != nil {
			return nil, fmt.Errorf("no admin token: give --admin-token or PENSTOCK_ADMIN_TOKEN (%w)", err)
		}
		a.AdminToken = strings.TrimSpace(string(kept))
	}
	q := url.Values{}
	if len(a.Reset) > 0 {
		q.Set("reset", strings.Join(a.Reset, ","))
	}
	if a.Prune {
		q.Set("prune", "true")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, strings.TrimRight(a.Server, "/")+"/admin/inventory?"+q.Encode(), bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.AdminToken)
	return req, nil
}

// refusal lists what the gateway found wrong, one line per field.
func refusal(status string, body []byte) error {
	var answer struct {
		Message string              `json:"message"`
		Errors  map[string][]string `json:"errors"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Message == "" {
		return fmt.Errorf("apply: %s: %s", status, body)
	}
	if len(answer.Errors) == 0 {
		return fmt.Errorf("apply: %s: %s", status, answer.Message)
	}
	lines := []string{"the inventory was refused:"}
	for _, path := range slices.Sorted(maps.Keys(answer.Errors)) {
		for _, text := range answer.Errors[path] {
			lines = append(lines, "  "+path+": "+text)
		}
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}
