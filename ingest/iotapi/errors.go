package iotapi

import (
	"fmt"
	"reflect"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/rule"
)

// invalidDevice answers for an unknown device as the specification requires for some
// operations.
func invalidDevice(c *fiber.Ctx, err error) error {
	if relay.KindOf(err) == relay.KindNotFound {
		return httpd.Message(c, fiber.StatusUnprocessableEntity, "Invalid Device.")
	}
	return err
}

// decodeRequest decodes the input of an operation: a JSON body, query parameters, or
// both; the body takes precedence.
func decodeRequest(c *fiber.Ctx, target any) error {
	raw, err := httpd.Body(c, maxBody)
	if err != nil {
		return err
	}
	if len(raw) == 0 && len(c.Request().URI().QueryString()) > 0 {
		return fromQuery(c, target)
	}
	if !params.IsJSON(c) {
		return params.ErrNotJSON
	}
	if err := decode(raw, target); err != nil {
		return err
	}
	return fromQuery(c, target)
}

func decodeBody(c *fiber.Ctx, target any) ([]byte, error) {
	raw, err := httpd.Body(c, maxRule)
	if err != nil {
		return nil, err
	}
	if !params.IsJSON(c) {
		return nil, params.ErrNotJSON
	}
	return raw, decode(raw, target)
}

const (
	maxRule    = 1 << 20 // the longest body with a rule or an alarm, in bytes
	maxIgnored = 10      // the most unknown fields that warnings name
)

// decodeRule decodes a rule and names the fields that it ignores: a condition that is
// misspelt would otherwise not be a condition.
func decodeRule(c *fiber.Ctx, target *rule.Change) (warnings []string, err error) {
	raw, err := decodeBody(c, target)
	if err != nil {
		return nil, err
	}
	unknown := unknownFields(raw, reflect.TypeFor[rule.Change](), "")
	for _, path := range unknown[:min(maxIgnored, len(unknown))] {
		warnings = append(warnings, fmt.Sprintf("The field %.80s is unknown and was ignored.", path))
	}
	return warnings, nil
}
