package iotapi

import (
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/user"
)

type ruleJSON struct {
	rule.Document
	Failures  rule.FailuresDocument `json:"failures"`
	CreatedAt string                `json:"created_at"`
	UpdatedAt string                `json:"updated_at"`
}

func ruleOf(r rule.Rule) ruleJSON {
	return ruleJSON{
		Document: rule.DocumentOf(r), CreatedAt: formatTime(r.CreatedAt), UpdatedAt: formatTime(r.UpdatedAt),
		Failures: rule.FailuresDocumentOf(r.Failures, iot.TimeFormat),
	}
}

func (s *Surface) createRule(c *fiber.Ctx) error {
	var change rule.Change
	ignored, err := decodeRule(c, &change)
	if err != nil {
		return err
	}
	r, err := change.New()
	if err != nil {
		return err
	}
	r, warnings, err := s.Rules.Create(c.UserContext(), httpd.AccountOf(c), r)
	if err != nil {
		return err
	}
	return sendRule(c, fiber.StatusCreated, r, append(ignored, warnings...))
}

func (s *Surface) patchRule(c *fiber.Ctx) error {
	var change rule.Change
	ignored, err := decodeRule(c, &change)
	if err != nil {
		return err
	}
	r, warnings, err := s.Rules.Change(c.UserContext(), httpd.AccountOf(c), params.Path(c, "rule_id"), change.Apply)
	if err != nil {
		return err
	}
	return sendRule(c, fiber.StatusOK, r, append(ignored, warnings...))
}

func sendRule(c *fiber.Ctx, status int, r rule.Rule, warnings []string) error {
	if warnings == nil {
		warnings = []string{}
	}
	return c.Status(status).JSON(fiber.Map{"data": ruleOf(r), "warnings": warnings})
}

func (s *Surface) listRules(c *fiber.Ctx) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	rules, err := s.Rules.Rules(c.UserContext(), httpd.AccountOf(c))
	if err != nil {
		return err
	}
	page.PerPage = min(page.PerPage, max(relay.MaxPerPage, len(rules))) // PerPage is MaxInt for the whole list
	views := httpd.Each(httpd.PageOf(page, rules), ruleOf)
	return c.JSON(fiber.Map{"data": views, "meta": fiber.Map{"pagination": httpd.PaginationOf(page, len(views), len(rules))}})
}

func (s *Surface) tryRule(c *fiber.Ctx) ([]rule.TrialDocument, error) {
	var request rule.TrialRequest
	if _, err := decodeBody(c, &request); err != nil {
		return nil, err
	}
	t, err := request.Trial()
	if err != nil {
		return nil, err
	}
	results, err := s.Rules.Try(c.UserContext(), httpd.AccountOf(c), t)
	if err != nil {
		return nil, request.MapFields(err)
	}
	trials := make([]rule.TrialDocument, len(results))
	for i, r := range results {
		if trials[i], err = rule.TrialDocumentOf(c.UserContext(), r, iot.TimeFormat, s.Preview); err != nil {
			return nil, err
		}
	}
	return trials, nil
}

type alarmJSON struct {
	ID       string `json:"id"`
	RuleID   string `json:"rule_id"`
	DeviceID string `json:"device_id"`
	rule.AlarmDocument
}

func alarmOf(a rule.Alarm) alarmJSON {
	return alarmJSON{ID: a.ID, RuleID: a.RuleID, DeviceID: a.DeviceID, AlarmDocument: rule.AlarmDocumentOf(a, iot.TimeFormat)}
}

// listAlarms lists alarms, newest first. The range includes the whole second of to, because
// answers have times in seconds.
func (s *Surface) listAlarms(c *fiber.Ctx) error {
	i := listInput(c)
	f := rule.AlarmFilter{
		State: rule.State(i.Text("state")), RuleID: i.Text("rule_id"), DeviceID: i.Text("device_id"),
		From: i.time("from"), To: i.time("to"),
		Limit: i.int("limit", defaultAlarms, relay.MaxPerPage), Cursor: i.Text("cursor"),
	}
	if f.State != "" && f.State != rule.Raised && f.State != rule.Cleared {
		i.Add("state", "The selected state is invalid.")
	}
	if !f.To.IsZero() {
		f.To = f.To.Truncate(time.Second).Add(time.Second - 1)
	}
	if err := i.Err(); err != nil {
		return err
	}
	list, nextCursor, err := s.Rules.Alarms(c.UserContext(), httpd.AccountOf(c), f)
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"data": httpd.Each(list, alarmOf), "meta": fiber.Map{"next": nextCursor}})
}

// defaultAlarms is the default limit of a list of alarms.
const defaultAlarms = 100

func (s *Surface) patchAlarm(c *fiber.Ctx) (rule.Alarm, error) {
	var request struct {
		Acknowledged *bool  `json:"acknowledged"`
		Note         string `json:"note"`
	}
	if _, err := decodeBody(c, &request); err != nil {
		return rule.Alarm{}, err
	}
	p := relay.Problems{}
	switch {
	case request.Acknowledged == nil:
		p.Require("acknowledged", "")
	case !*request.Acknowledged:
		p.Add("acknowledged", "The acknowledged must be true.")
	}
	p.Limit("note", request.Note, maxNote)
	if err := p.Err(); err != nil {
		return rule.Alarm{}, err
	}
	return s.Rules.Acknowledge(c.UserContext(), httpd.AccountOf(c), params.Path(c, "alarm_id"), actor(c), request.Note)
}

func (s *Surface) muteAlarms(c *fiber.Ctx) (rule.Mute, error) {
	var request rule.MuteRequest
	if _, err := decodeBody(c, &request); err != nil {
		return rule.Mute{}, err
	}
	return s.Rules.Mute(c.UserContext(), httpd.AccountOf(c), request, actor(c))
}

func muteOf(m rule.Mute) rule.MuteDocument { return rule.MuteDocumentOf(m, iot.TimeFormat) }

func (s *Surface) unmuteAlarms(c *fiber.Ctx) error {
	i := listInput(c)
	ruleID, deviceID := i.Text("rule_id"), i.Text("device_id")
	if err := i.Err(); err != nil {
		return err
	}
	if err := s.Rules.Unmute(c.UserContext(), httpd.AccountOf(c), ruleID, deviceID); err != nil {
		return err
	}
	return c.SendStatus(fiber.StatusNoContent)
}

// maxNote is the longest note, in bytes.
const maxNote = 2000

// actor returns the name of the sender who acknowledges or mutes alarms: the name of a user,
// "operator" for the admin token, or for another token its source or its id.
func actor(c *fiber.Ctx) string {
	principal, t := httpd.PrincipalOf(c), httpd.TokenOf(c)
	switch {
	case principal.Session != nil:
		return principal.Name
	case principal.Role != "":
		return string(user.Operator)
	case t.Source != "":
		return t.Source
	}
	return "token " + strings.ToLower(t.ID())
}
