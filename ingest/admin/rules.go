package admin

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/rule"
)

type ruleJSON struct {
	rule.Document
	Account   relay.AccountID       `json:"account"`
	Failures  rule.FailuresDocument `json:"failures"`
	CreatedAt string                `json:"created_at"`
	UpdatedAt string                `json:"updated_at"`
	// Undecryptable means that the record cannot be decrypted (see relay.ErrUndecryptable). Its
	// encrypted fields are omitted.
	Undecryptable bool `json:"unopened,omitempty"`
}

type alarmJSON struct {
	ID         string          `json:"id"`
	Account    relay.AccountID `json:"account"`
	RuleID     string          `json:"rule_id"`
	DeviceID   string          `json:"device_id"`
	DeviceName string          `json:"device_name"` // or the device's identifier; empty if the device was deleted
	rule.AlarmDocument
}

// alarmsOf returns alarms for an answer.
func (s *Surface) alarmsOf(ctx context.Context, found []rule.AccountRecord[rule.Alarm]) ([]alarmJSON, error) {
	ids := make(map[relay.AccountID][]string)
	for _, a := range found {
		ids[a.Account] = append(ids[a.Account], a.Record.DeviceID)
	}
	devices := make(map[relay.AccountID]map[string]iot.Device, len(ids))
	for acct, deviceIDs := range ids {
		slices.Sort(deviceIDs)
		var err error
		if devices[acct], err = s.IoT.DevicesByID(ctx, acct, slices.Compact(deviceIDs)); err != nil {
			return nil, err
		}
	}
	views := make([]alarmJSON, len(found))
	for i, a := range found {
		d := devices[a.Account][a.Record.DeviceID]
		views[i] = alarmJSON{
			ID: a.Record.ID, Account: a.Account, RuleID: a.Record.RuleID, DeviceID: a.Record.DeviceID, DeviceName: cmp.Or(d.Name, d.Identifier),
			AlarmDocument: rule.AlarmDocumentOf(a.Record, time.RFC3339Nano),
		}
	}
	return views, nil
}

// listRules lists the rules of one or all accounts, by account and creation.
func (s *Surface) listRules(c *fiber.Ctx, sel *selection) error {
	acct, limit := sel.account(), sel.limit()
	lastRef, createdNs := rule.Cursor{}, int64(0)
	parseCursor(sel, &lastRef.ID, &lastRef.Account, &createdNs)
	lastRef.CreatedAt = time.Unix(0, createdNs)
	if err := sel.Err(); err != nil {
		return err
	}
	if err := s.mustExist(c.UserContext(), acct); err != nil {
		return err
	}
	found, err := s.Rules.FindRules(c.UserContext(), acct, lastRef, limit+1)
	if err != nil {
		return err
	}
	found, nextCursor := trimPage(found, limit, func(r rule.AccountRecord[rule.Rule]) string {
		return formatCursor("%d %d %s", r.Account, r.Record.CreatedAt.UnixNano(), r.Record.ID)
	})
	views := httpd.Each(found, func(owned rule.AccountRecord[rule.Rule]) ruleJSON {
		r := owned.Record
		return ruleJSON{
			rule.DocumentOf(r), owned.Account, rule.FailuresDocumentOf(r.Failures, time.RFC3339Nano), formatTime(r.CreatedAt), formatTime(r.UpdatedAt), r.Undecryptable,
		}
	})
	return sendPage(c, views, nextCursor)
}

// mustExist returns a NotFound error for an account that does not exist; 0 means all accounts.
func (s *Surface) mustExist(ctx context.Context, acct relay.AccountID) error {
	if acct == 0 {
		return nil
	}
	_, err := s.Accounts.Account(ctx, acct)
	return err
}

// maxAlarms is the maximum number of alarms on a page.
const maxAlarms = 500

// listAlarms lists the alarms of one or all accounts, newest first.
func (s *Surface) listAlarms(c *fiber.Ctx, sel *selection) error {
	acct := sel.account()
	f := rule.AlarmFilter{
		State: oneOf(sel, "state", rule.Raised, rule.Cleared), RuleID: sel.text("rule_id"), DeviceID: sel.text("device_id"),
		From: sel.timestamp("from"), To: sel.timestamp("to"), Limit: min(sel.limit(), maxAlarms), Cursor: sel.option("cursor"),
	}
	if err := sel.Err(); err != nil {
		return err
	}
	if err := s.mustExist(c.UserContext(), acct); err != nil {
		return err
	}
	found, nextCursor, err := s.Rules.FindAlarms(c.UserContext(), acct, f)
	if err != nil {
		return err
	}
	views, err := s.alarmsOf(c.UserContext(), found)
	if err != nil {
		return err
	}
	return sendPage(c, views, nextCursor)
}
