package iotapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/rule"
)

type ruleJSON struct {
	rule.Document
	Failures  rule.FailuresText `json:"failures"`
	CreatedAt string            `json:"created_at"`
	UpdatedAt string            `json:"updated_at"`
}

func ruleOf(r rule.Rule) ruleJSON {
	return ruleJSON{
		Document: rule.DocumentOf(r), CreatedAt: formatTime(r.CreatedAt), UpdatedAt: formatTime(r.UpdatedAt),
		Failures: rule.FailuresTextOf(r.Failures, iot.TimeFormat),
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
	page.PerPage = min(page.PerPage, max(relay.MaxPerPage, len(rules))) // a whole list is one page
	views := httpd.Each(httpd.PageOf(page, rules), ruleOf)
	return c.JSON(fiber.Map{"data": views, "meta": fiber.Map{"pagination": httpd.PaginationOf(page, len(views), len(rules))}})
}

func (s *Surface) tryRule(c *fiber.Ctx) ([]rule.TrialText, error) {
	var trialRequest rule.TrialRequest
	if _, err := decodeBody(c, &trialRequest); err != nil {
		return nil, err
	}
	t, err := trialRequest.Trial()
	if err != nil {
		return nil, err
	}
	results, err := s.Rules.Try(c.UserContext(), httpd.AccountOf(c), t)
	if err != nil {
		return nil, trialRequest.Error(err)
	}
	trialTexts := make([]rule.TrialText, len(results))
	for i, r := range results {
		if trialTexts[i], err = rule.TrialTextOf(c.UserContext(), r, iot.TimeFormat, s.Preview); err != nil {
			return nil, err
		}
	}
	return trialTexts, nil
}
