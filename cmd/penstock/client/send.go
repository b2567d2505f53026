package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/penstock/penstock/config"
)

// Send sends an SMS with the token of an account.
type Send struct {
	To      []string `arg:"" help:"The numbers with their country codes."`
	Text    string   `short:"m" required:"" help:"The text; - is the standard input." placeholder:"TEXT"`
	From    string   `help:"The originator: digits, or up to 11 characters." placeholder:"NAME"`
	Preview bool     `help:"Print the number of parts and the cost without sending."`
	Token   string   `help:"A token of the account with the scope messaging; default: the demo account's, in the data directory." placeholder:"T"`
	JSON    bool     `name:"json" help:"Print the gateway's answer as JSON."`
	Server  string   `aliases:"url" help:"The gateway's URL; default: PENSTOCK_SERVER, else the listen address of the configuration." placeholder:"URL"`
}

// Run sends the message and prints the id for each number, or prints the cost with --preview.
func (s Send) Run(env Environment) error {
	if s.Text == "-" {
		text, err := io.ReadAll(io.LimitReader(env.Stdin, 1<<20))
		if err != nil {
			return err
		}
		s.Text = string(text)
	}
	fields := map[string]any{"destinations": s.To, "message": s.Text}
	if s.From != "" {
		fields["originator"] = s.From
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	target := "/v2/sms/send"
	if s.Preview {
		target = "/v2/sms/preview"
	}
	answer, err := s.post(env, target, body)
	if err != nil {
		return err
	}
	switch {
	case s.JSON:
		return printLine(env, "%s", answer)
	case s.Preview:
		return printPreview(env, answer)
	}
	return printSent(env, answer)
}

func (s Send) post(env Environment, target string, body []byte) ([]byte, error) {
	c, err := config.Load("", env.Variables)
	if err != nil {
		return nil, err
	}
	if s.Token == "" {
		if s.Token, err = readTokenFile(c, DemoTokenFile); err != nil {
			return nil, fmt.Errorf("no token: set --token (%w)", err)
		}
	}
	status, answer, err := do(env, "the message", http.MethodPost, serverURL(env, s.Server, c.LocalURL()), target, body,
		http.Header{"Content-Type": {"application/json"}, "X-Auth-Token": {s.Token}})
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		var refusal struct{ Message string }
		if json.Unmarshal(answer, &refusal) != nil || refusal.Message == "" {
			refusal.Message = strings.TrimSpace(string(answer))
		}
		return nil, fmt.Errorf("the message was refused: %d %s: %s", status, http.StatusText(status), refusal.Message)
	}
	return answer, nil
}

func printSent(env Environment, answer []byte) error {
	sent, err := dataOf[[]struct {
		ID          int64
		Destination string
	}]("the message", answer)
	for _, m := range sent {
		if err == nil {
			err = printLine(env, "message %d to %s queued", m.ID, m.Destination)
		}
	}
	return err
}

func printPreview(env Environment, answer []byte) error {
	p, err := dataOf[struct {
		Parts     int   `json:"message_parts"`
		Cost      int64 `json:"credit_cost"`
		Available int64 `json:"available_credit"`
	}]("the preview", answer)
	if err != nil {
		return err
	}
	return printLine(env, "%s, %s of %d available", countText(p.Parts, "part", "parts"), countText(p.Cost, "credit", "credits"), p.Available)
}
