package rule

import (
	"fmt"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/condition"
	"github.com/penstock/penstock/relay/template"
)

// Limits of an action.
const (
	maxParameters = 100
	maxURL        = 2048
)

// Settings are the gateway's settings for deliveries of rules. New sets the defaults.
type Settings struct {
	// Zone is the time zone in expressions, in the placeholder %time and in texts; nil means UTC.
	Zone       *time.Location
	MailDomain string // domain of the message IDs of mails
	PublicURL  string // base URL of the links in bodies of http_post; empty means no links
	// Now returns the creation time of deliveries; nil means Options.Now.
	Now func() time.Time
}

// actions are the compiled actions of a rule. They are read-only.
type actions struct {
	actions []action
	// conditionKeys has the sorted keys of the readings that the rule's conditions examine.
	conditionKeys []string
}

type action struct {
	declared Action
	body     *condition.Body      // nil for the default body
	urls     []*template.Template // URLs of http_post and http_get, by parameter
}

// compileActions checks and compiles the actions of a rule. It returns relay.KindInvalid with the
// invalid fields, such as actions[0].parameters[1]. Problems of a body have the line and the
// column.
func compileActions(r *Rule, conditionKeys []string) (*actions, error) {
	p := relay.Problems{}
	compiled := &actions{actions: make([]action, len(r.Actions)), conditionKeys: conditionKeys}
	for i, a := range r.Actions {
		c := &compiled.actions[i]
		c.declared = a
		add := func(field, format string, args ...any) {
			p.Add(fmt.Sprintf("actions[%d].%s", i, field), fmt.Sprintf(format, args...))
		}
		// 1. The kind.
		switch a.Action {
		case HTTPPost, Email:
		case HTTPGet, SMS:
			if r.Batch != (Batch{}) {
				add("action", "The action %s cannot carry a batch; use %s or %s.", a.Action, HTTPPost, Email)
			}
		default:
			add("action", "The action must be one of %s.", strings.Join([]string{HTTPPost, HTTPGet, Email, SMS}, ", "))
			continue
		}
		// 2. The parameters.
		if n := len(a.Parameters); n == 0 || n > maxParameters {
			add("parameters", "An action must have between 1 and %d parameters.", maxParameters)
		}
		for j, parameter := range a.Parameters {
			if err := c.addParameter(parameter); err != nil {
				add(fmt.Sprintf("parameters[%d]", j), "%v", err)
			}
		}
		// 3. The body and the originator.
		if a.Body != "" && a.Action == HTTPGet {
			add("body", "The body is only for the actions %s, %s and %s.", HTTPPost, Email, SMS)
		} else if a.Body != "" {
			var err error
			if c.body, err = condition.CompileBody(a.Body); err != nil {
				add("body", "%v", err)
			}
		}
		if a.Originator != "" && a.Action != SMS {
			add("originator", "The originator is only for the action %s.", SMS)
		} else if a.Originator != "" && !sms.NewAlphabet().IsOriginator(a.Originator) {
			add("originator", "The originator must be 1 to 15 digits, with or without a plus sign, or 1 to 11 characters of the GSM alphabet.")
		}
	}
	return compiled, p.Err()
}

// addParameter checks a parameter and compiles it if it is a URL.
func (a *action) addParameter(parameter string) error {
	switch a.declared.Action {
	case Email:
		return relay.CheckAddress(parameter)
	case SMS:
		if _, err := relay.ParseMSISDN(parameter); err != nil {
			return fmt.Errorf("%.40q is not a number of 7 to 15 digits, country code first, without a plus sign or leading zeros", parameter)
		}
		return nil
	}
	if len(parameter) > maxURL {
		return fmt.Errorf("the URL may not be longer than %d characters", maxURL)
	}
	t, err := template.Compile(parameter, placeholders())
	if err != nil {
		return err
	}
	a.urls = append(a.urls, t)
	return t.Check()
}

// checkURLs calls check for the URLs of the actions with sample values for the placeholders.
func (a *actions) checkURLs(check func(string) error) error {
	p := relay.Problems{}
	for i, act := range a.actions {
		for j, url := range act.urls {
			if err := check(url.Sample()); err != nil {
				p.Add(fmt.Sprintf("actions[%d].parameters[%d]", i, j), "The URL is refused: "+err.Error()+".")
			}
		}
	}
	return p.Err()
}
