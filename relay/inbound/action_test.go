package inbound

import (
	"errors"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestActionsFollowTheSpecification(t *testing.T) {
	for kind, want := range map[Kind]string{
		Geographic:    "black_hole http_post http_get email",
		VirtualNumber: "inactive http_get http_post email dialogue_post dialogue_get ms_outlook desktopsms inbound_gw",
	} {
		var got []string
		for _, a := range Actions(kind) {
			got = append(got, a.Name)
			if a.Description == "" || Describe(kind, a.Name) != a.Description {
				t.Errorf("%s %s has no description", kind, a.Name)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("actions of %s = %s, want %s", kind, s, want)
		}
	}
	if !NeedsPermission(Geographic, MVNO) || NeedsPermission(Geographic, HTTPGet) {
		t.Error("NeedsPermission is not true for mvno only")
	}
}

func refusePrivate(raw string) error {
	if strings.Contains(raw, "10.0.0.1") {
		return errors.New("the address 10.0.0.1 is private")
	}
	return nil
}

func TestInvalidActionsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		kind       Kind
		action     string
		parameters []string
		field      string // empty if the action is valid
		problem    string // part of the problem of the field
	}{
		"black_hole without parameters":        {Geographic, BlackHole, nil, "", ""},
		"black_hole with an ignored parameter": {Geographic, BlackHole, []string{"x"}, "", ""},
		"inactive without parameters":          {VirtualNumber, Inactive, nil, "", ""},
		"two URLs":                             {VirtualNumber, HTTPPost, []string{"http://a/?m=%msg", "https://b/"}, "", ""},
		"an address":                           {Geographic, Email, []string{"a.b+c@example.com"}, "", ""},
		"an unknown action":                    {Geographic, "carrier_pigeon", nil, "action", "black_hole, http_post, http_get, email, mvno"},
		"an action of the other kind":          {Geographic, Inactive, nil, "action", "must be one of"},
		"no action":                            {VirtualNumber, "", nil, "action", "must be one of"},
		"a label":                              {VirtualNumber, DesktopSMS, []string{"front desk"}, "", ""},
		"no label":                             {VirtualNumber, DesktopSMS, nil, "parameters", "required when action is desktopsms"},
		"an empty label":                       {VirtualNumber, DesktopSMS, []string{""}, "parameters", "parameters.0"},
		"a label of 256 characters":            {VirtualNumber, DesktopSMS, []string{strings.Repeat("x", 256)}, "parameters", "longer than 255"},
		"an invalid address of ms_outlook":     {VirtualNumber, MSOutlook, []string{"a@example.com", "b"}, "parameters", "parameters.1"},
		"dialogue_get with an invalid URL":     {VirtualNumber, DialogueGet, []string{"a"}, "parameters", "http://"},
		"another gateway":                      {VirtualNumber, InboundGW, []string{"https://u:p@gw.example/inbound/sms/json"}, "", ""},
		"mvno without parameters":              {Geographic, MVNO, nil, "", ""},
		"no URL":                               {Geographic, HTTPGet, nil, "parameters", "required when action is http_get"},
		"an empty URL":                         {Geographic, HTTPGet, []string{""}, "parameters", "parameters.0"},
		"an invalid second URL":                {Geographic, HTTPGet, []string{"http://a/", "b"}, "parameters", "parameters.1"},
		"a private address":                    {Geographic, HTTPGet, []string{"http://10.0.0.1/?m=%m"}, "parameters", "private"},
		"a URL of more than 2048 bytes":        {Geographic, HTTPGet, []string{"http://a/" + strings.Repeat("x", 2048)}, "parameters", "longer than 2048"},
		"an address with a name":               {Geographic, Email, []string{"A <a@example.com>"}, "parameters", "not an e-mail address"},
		"an address with a line end":           {Geographic, Email, []string{"a@example.com\r\nBcc: b@example.com"}, "parameters", "not an e-mail address"},
		"an address with a line end in quotes": {Geographic, Email, []string{"\"a\r\n b\"@example.com"}, "parameters", "not an e-mail address"},
		"two addresses in one parameter":       {Geographic, Email, []string{"a@example.com,b@example.com"}, "parameters", "not an e-mail address"},
		"a URL for an address":                 {Geographic, Email, []string{"http://a/"}, "parameters", "not an e-mail address"},
		"an address that is not ASCII":         {Geographic, Email, []string{"ä@example.com"}, "parameters", "not an e-mail address"},
		"101 endpoints":                        {Geographic, Email, make([]string, 101), "parameters", "more than 100"},
		"an unknown placeholder in the query":  {VirtualNumber, HTTPPost, []string{"http://a/?x=%sender"}, "parameters", `"%sender" is not a placeholder here; the placeholders are %id, %stat, %orig, %dest, %msg`},
		"a placeholder of the other kind":      {Geographic, HTTPGet, []string{"http://a/?x=%code"}, "parameters", `"%code" is not a placeholder here; the placeholders are %m, %o, %d, %t, %x, %u, %i, and %25`},
		"a placeholder as the host":            {VirtualNumber, HTTPGet, []string{"http://%dest/"}, "parameters", "%dest"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Action{Name: tc.action, Parameters: tc.parameters}.Validate(tc.kind, refusePrivate)
			if tc.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			problems := relay.FieldsOf(err)[tc.field]
			relaytest.Equal(t, "the kind of error", relay.KindOf(err), relay.KindInvalid)
			if len(problems) != 1 || !strings.Contains(problems[0], tc.problem) {
				t.Errorf("problems = %q, want one of %s with %q", relay.FieldsOf(err), tc.field, tc.problem)
			}
		})
	}
}

func TestInvalidRelaysAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		r     Relay
		field string
	}{
		"a virtual number":          {Relay{ID: "v1", Kind: VirtualNumber, Number: "447860000001"}, ""},
		"a short code":              {Relay{ID: "v1", Kind: VirtualNumber, Number: "66777"}, ""},
		"a prefix of one digit":     {Relay{ID: "g_1", Kind: Geographic, Number: "4"}, ""},
		"a prefix without a SIM":    {Relay{ID: "g1", Kind: Geographic, Number: "4", Action: Action{Name: MVNO}}, "action"},
		"a prefix with a SIM":       {Relay{ID: "g1", Kind: Geographic, Number: "4", ICCID: "8944", Action: Action{Name: MVNO}}, ""},
		"no id":                     {Relay{Kind: VirtualNumber, Number: "447860000001"}, "id"},
		"an id with a brace":        {Relay{ID: "{a}", Kind: VirtualNumber, Number: "447860000001"}, "id"},
		"an id with a slash":        {Relay{ID: "a/b", Kind: VirtualNumber, Number: "447860000001"}, "id"},
		"a number with a plus":      {Relay{ID: "v1", Kind: VirtualNumber, Number: "+447860000001"}, "number"},
		"a prefix with an asterisk": {Relay{ID: "g1", Kind: Geographic, Number: "4478*"}, "prefix"},
		"an empty prefix":           {Relay{ID: "g1", Kind: Geographic}, "prefix"},
		"a number of 16 digits":     {Relay{ID: "v1", Kind: VirtualNumber, Number: "4478600000011111"}, "number"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.r.Action.Name != "" {
				checkRelay(t, tc.r, tc.field)
				return
			}
			tc.r.Action.Name = map[Kind]string{Geographic: BlackHole, VirtualNumber: Inactive}[tc.r.Kind]
			checkRelay(t, tc.r, tc.field)
		})
	}
}

func checkRelay(t *testing.T, r Relay, field string) {
	t.Helper()
	err := r.Validate(nil)
	if fields := relay.FieldsOf(err); (err == nil) != (field == "") || err != nil && fields[field] == nil {
		t.Errorf("error = %v, fields = %v, want field %q", err, fields, field)
	}
}
