package admin

import (
	"encoding/hex"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/outbox"
)

// explainedJSON is the predicted outcome of a message.
type explainedJSON struct {
	State      string               `json:"state"`
	Reason     string               `json:"reason"`
	Outcome    string               `json:"outcome"`
	Message    routedJSON           `json:"message"`
	Joined     *joinedJSON          `json:"joined"`
	Matched    *matchedJSON         `json:"matched"`
	Considered []inbound.Considered `json:"considered"`
	Requests   []outbox.Outgoing    `json:"requests"`
}

// routedJSON is the message as the relay has it.
type routedJSON struct {
	outbox.Content
	Stat int `json:"stat"`
}

// joinedJSON lists the missing parts of a concatenated message.
type joinedJSON struct {
	Part    int   `json:"part"`
	Total   int   `json:"total"`
	Missing []int `json:"missing"`
}

type matchedJSON struct {
	Kind       inbound.Kind    `json:"kind"`
	ID         string          `json:"id"`
	Account    relay.AccountID `json:"account"`
	Why        string          `json:"why"`
	Action     string          `json:"action"`
	Parameters []string        `json:"parameters"`
	Filter     string          `json:"filter,omitempty"`
}

// explainRelay names which relay takes a message and why, why every other candidate does not,
// and what would go out. Nothing is saved or sent.
func (s *Surface) explainRelay(c *fiber.Ctx, sel *selection) error {
	acct := sel.account()
	if err := sel.Err(); err != nil {
		return err
	}
	body, err := httpd.Body(c, maxBody)
	if err != nil {
		return err
	}
	m, err := s.ReadMessage(body)
	if err != nil {
		return err
	}
	m.Account, m.Carrier = acct, "json"
	e, err := s.Explain(c.UserContext(), m)
	if err != nil {
		return err
	}
	return c.JSON(explainedOf(e))
}

func explainedOf(e inbound.Explanation) explainedJSON {
	m := &e.Message
	view := explainedJSON{
		State: string(e.State), Reason: e.Reason, Outcome: e.Outcome,
		Message: routedJSON{
			outbox.Content{From: m.From, To: m.To, Text: m.Text, Data: hex.EncodeToString(m.Data), UDH: hex.EncodeToString(m.UDH), Coding: int(m.Coding)},
			int(m.Status),
		},
		Considered: append([]inbound.Considered{}, e.Considered...), Requests: append([]outbox.Outgoing{}, e.Outgoing...),
	}
	if e.Part != nil {
		view.Joined = &joinedJSON{Part: e.Part.Number, Total: e.Part.Total, Missing: e.Part.Missing}
	}
	if r := e.Matched; r != nil {
		view.Matched = &matchedJSON{
			Kind: r.Kind, ID: r.ID, Account: r.Account, Why: e.Why, Action: r.Action.Name,
			Parameters: append([]string{}, r.Action.Parameters...), Filter: r.Filter,
		}
	}
	return view
}
