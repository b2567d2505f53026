package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
)

// Status prints the state of a running gateway.
type Status struct{ Flags }

// readyAnswer is the answer of /readyz.
type readyAnswer struct {
	Status   string `json:"status"`
	Backends map[string]struct {
		Status string `json:"status"`
		Note   string `json:"note,omitempty"`
		Error  string `json:"error,omitempty"`
	} `json:"backends"`
}

// gatewaysAnswer is the answer of /admin/gateways.
type gatewaysAnswer struct {
	Data []struct {
		Node      string `json:"node"`
		URL       string `json:"url"`
		Version   string `json:"version"`
		StartedAt string `json:"started_at"`
		SeenAt    string `json:"seen_at"`
		Away      bool   `json:"away"`
	} `json:"data"`
}

// Run prints the back ends and the gateways. It fails unless the gateway is ready.
func (s Status) Run(env Environment) error {
	body, err := s.Request(env, "the status", http.MethodGet, "/readyz", nil, http.StatusServiceUnavailable)
	if err != nil {
		return err
	}
	var ready readyAnswer
	if err := json.Unmarshal(body, &ready); err != nil {
		return fmt.Errorf("the status: %w", err)
	}
	// The list of gateways is in the database, which may be down.
	body, listErr := s.Request(env, "the gateways", http.MethodGet, "/admin/gateways", nil)
	if errors.Is(listErr, errToken) {
		return listErr
	}
	var answer gatewaysAnswer
	if listErr == nil {
		listErr = json.Unmarshal(body, &answer)
	}
	if s.JSON {
		err = json.NewEncoder(env.Stdout).Encode(map[string]any{"status": ready.Status, "backends": ready.Backends, "gateways": answer.Data})
	} else {
		err = printStatus(env.Stdout, ready, answer)
	}
	if err = errors.Join(err, listErr); err == nil && ready.Status != "ready" {
		err = errors.New("the gateway is not ready")
	}
	return err
}

func printStatus(writer io.Writer, ready readyAnswer, answer gatewaysAnswer) error {
	_, _ = fmt.Fprintf(writer, "%s\n\n", ready.Status)
	rows := [][]string{{"BACK END", "STATUS", "NOTE"}}
	for _, name := range slices.Sorted(maps.Keys(ready.Backends)) {
		b := ready.Backends[name]
		note := b.Note
		if b.Error != "" {
			note += ": " + b.Error
		}
		rows = append(rows, []string{name, b.Status, note})
	}
	if len(answer.Data) > 0 {
		rows = append(rows, nil, []string{"GATEWAY", "STATUS", "URL", "VERSION", "STARTED", "LAST SEEN"})
	}
	for _, g := range answer.Data {
		state := "ok"
		if g.Away {
			state = "away"
		}
		rows = append(rows, []string{g.Node, state, g.URL, g.Version, g.StartedAt, g.SeenAt})
	}
	return printTable(writer, rows)
}
