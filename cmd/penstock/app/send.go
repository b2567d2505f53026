package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/config"
)

// sendCommand sends one SMS as an account does.
type sendCommand struct {
	To      []string `arg:"" help:"The numbers, country code first."`
	Text    string   `short:"m" required:"" help:"The text; - is the standard input." placeholder:"TEXT"`
	From    string   `help:"The originator: digits, or up to 11 characters." placeholder:"NAME"`
	Preview bool     `help:"Print parts and cost, and send nothing."`
	Token   string   `help:"A token of the account with the scope messaging; default: the demo account's, in the data directory." placeholder:"T"`
	JSON    bool     `name:"json" help:"Print the gateway's answer as JSON."`
	Server  string   `aliases:"url" help:"The gateway's URL; default: the listen address of the configuration." placeholder:"URL"`
}

// Run sends the message and prints the id of each part's entry, or with --preview what
// it would cost.
func (s sendCommand) Run(w Environment) error {
	if s.Text == "-" {
		text, err := io.ReadAll(io.LimitReader(w.Stdin, 1<<20))
		if err != nil {
			return err
		}
		s.Text = string(text)
	}
	order := map[string]any{"destinations": s.To, "message": s.Text}
	if s.From != "" {
		order["originator"] = s.From
	}
	body, err := json.Marshal(order)
	if err != nil {
		return err
	}
	target := "/v2/sms/send"
	if s.Preview {
		target = "/v2/sms/preview"
	}
	answer, err := s.post(w, target, body)
	if err != nil {
		return err
	}
	switch {
	case s.JSON:
		_, err = fmt.Fprintf(w.Stdout, "%s\n", answer)
		return err
	case s.Preview:
		return printPreview(w.Stdout, answer)
	}
	return printSent(w.Stdout, answer)
}

func (s sendCommand) post(w Environment, target string, body []byte) ([]byte, error) {
	c, err := config.Load("", w.Variables)
	if err != nil {
		return nil, err
	}
	if s.Server == "" {
		s.Server = c.LocalURL()
	}
	if s.Token == "" {
		demo, err := os.ReadFile(filepath.Join(c.DataDir, demoTokenFile))
		if err != nil {
			return nil, fmt.Errorf("no token: give --token (%w)", err)
		}
		s.Token = strings.TrimSpace(string(demo))
	}
	ctx, cancel := context.WithTimeout(w.Context, askTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(s.Server, "/")+target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Auth-Token", s.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		var refusal struct{ Message string }
		if json.Unmarshal(answer, &refusal) != nil || refusal.Message == "" {
			refusal.Message = strings.TrimSpace(string(answer))
		}
		return nil, fmt.Errorf("the message was refused: %s: %s", resp.Status, refusal.Message)
	}
	return answer, nil
}

func printSent(out io.Writer, answer []byte) error {
	var sent struct {
		Data []struct {
			ID          int64
			Destination string
		}
	}
	if err := json.Unmarshal(answer, &sent); err != nil {
		return fmt.Errorf("the message: %w", err)
	}
	for _, m := range sent.Data {
		if _, err := fmt.Fprintf(out, "message %d to %s queued\n", m.ID, m.Destination); err != nil {
			return err
		}
	}
	return nil
}

func printPreview(out io.Writer, answer []byte) error {
	var preview struct {
		Data struct {
			Parts     int   `json:"message_parts"`
			Cost      int64 `json:"credit_cost"`
			Available int64 `json:"available_credit"`
		}
	}
	if err := json.Unmarshal(answer, &preview); err != nil {
		return fmt.Errorf("the preview: %w", err)
	}
	_, err := fmt.Fprintf(out, "%d parts, %d credits of %d available\n", preview.Data.Parts, preview.Data.Cost, preview.Data.Available)
	return err
}
