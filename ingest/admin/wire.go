package admin

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// selection reads the fields of a query or a body; each may stand in either.
type selection struct {
	relay.Problems
	c    *fiber.Ctx
	body map[string]json.RawMessage
	// used counts the fields that selected anything.
	used int
	// find finds an account by its name or id; failed is why it could not.
	find   func(AccountRef) (account.ID, error)
	failed error
}

// selectionOf reads a request whose account may be named.
func (s *Surface) selectionOf(c *fiber.Ctx) (*selection, error) {
	sel, err := selectionOf(c)
	if err == nil {
		sel.find = func(r AccountRef) (account.ID, error) { return s.accountID(c, r) }
	}
	return sel, err
}

// selectionOf reads the body, if there is one, as a JSON object.
func selectionOf(c *fiber.Ctx) (*selection, error) {
	s := &selection{c: c, Problems: relay.Problems{}}
	raw, err := httpd.Body(c, 4<<20)
	if err != nil {
		return nil, err
	}
	if len(raw) > 0 && json.Unmarshal(raw, &s.body) != nil {
		return nil, fiber.NewError(fiber.StatusUnprocessableEntity, "Invalid JSON.")
	}
	return s, nil
}

// Err returns what is wrong with the fields, or why an account could not be looked up.
func (s *selection) Err() error {
	if err := s.Problems.Err(); err != nil {
		return err
	}
	return s.failed
}

// maxLoggedSelection bounds a selection in the log, in bytes.
const maxLoggedSelection = 500

// String is the selection as the request has it, for the log.
func (s *selection) String() string {
	out := string(s.c.Request().URI().QueryString())
	if body, err := json.Marshal(s.body); err == nil && len(s.body) > 0 {
		out += string(body)
	}
	if len(out) > maxLoggedSelection {
		out = out[:maxLoggedSelection] + "…"
	}
	return strings.ToValidUTF8(out, "\uFFFD")
}

// text returns a field as text; a number in a body counts as text.
func (s *selection) text(name string) string {
	out := strings.Clone(s.c.Query(name))
	if raw, ok := s.body[name]; ok {
		if json.Unmarshal(raw, &out) != nil {
			out = string(raw)
		}
	}
	if out != "" {
		s.used++
	}
	return out
}

// oneOf returns a field that has to be one of some words.
func (s *selection) oneOf(name string, words ...string) string {
	v := s.text(name)
	if v == "" {
		return ""
	}
	for _, w := range words {
		if v == w {
			return v
		}
	}
	s.Add(name, "want one of "+strings.Join(words, ", ")+", got "+strconv.Quote(v))
	return ""
}

func (s *selection) moment(name string) time.Time {
	v := s.text(name)
	if v == "" {
		return time.Time{}
	}
	if t, ok := iso8601.Parse(v); ok {
		return t
	}
	s.Add(name, "want a time like 2026-01-31T12:00:00Z, got "+strconv.Quote(v))
	return time.Time{}
}

func (s *selection) account() account.ID {
	id, err := s.find(AccountRef(s.text("account")))
	for _, problem := range relay.FieldsOf(err)["account"] {
		s.Add("account", problem)
	}
	if err != nil && s.Problems["account"] == nil {
		s.failed = err
	}
	return id
}

// number is a number as people write it, or a sender's name.
func (s *selection) number() string {
	text := s.text("number")
	number, _ := relay.NumberFrom(text)
	return number
}

func (s *selection) ids() []string {
	var out []string
	if raw, ok := s.body["ids"]; ok {
		if json.Unmarshal(raw, &out) != nil {
			s.Add("ids", "want a list of ids")
		}
	}
	if len(out) > 0 {
		s.used++
	}
	return out
}

func (s *selection) flag(name string) bool {
	used := s.used
	v := s.text(name)
	s.used = used
	if v == "" {
		return false
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		s.Add(name, "want true or false")
	}
	return b
}

func (s *selection) limit() int {
	used := s.used
	v := s.text("limit")
	s.used = used
	if v == "" {
		return defaultLimit
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > maxLimit {
		s.Add("limit", "want 1 to 1000")
	}
	return n
}

// cursor is where a list goes on; it selects nothing.
func (s *selection) cursor() string {
	used := s.used
	v := s.text("cursor")
	s.used = used
	return v
}

// require refuses a replay that selects everything by accident.
func (s *selection) require() {
	if s.used == 0 {
		s.Add("ids", "name ids or at least one filter")
	}
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func formatTimeOrNil(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(formatTime(t))
}
