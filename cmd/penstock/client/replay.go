package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Replay makes a running gateway process events again or attempt deliveries
// again.
type Replay struct {
	Events     replayEventsCommand     `cmd:"" help:"Process events again: decode, route and store them with the current configuration."`
	Deliveries replayDeliveriesCommand `cmd:"" help:"Attempt dead deliveries again."`
}

// selectFlags are the filters that events and deliveries have in common.
type selectFlags struct {
	IDs     []string      `arg:"" optional:"" name:"id" help:"Ids; with filters, only those that match both."`
	State   string        `help:"The state." placeholder:"STATE"`
	Account string        `help:"The account's name or id." placeholder:"ACCOUNT"`
	Kind    string        `help:"The kind: uplink, sms, receipt or cdr for events; relay, receipt or callback for deliveries." placeholder:"KIND"`
	From    string        `help:"Start of the time range, RFC 3339 or YYYY-MM-DD HH:MM:SS in UTC." placeholder:"TIME"`
	To      string        `help:"End of the time range, inclusive." placeholder:"TIME"`
	Last    time.Duration `help:"Instead of --from: start of the time range before now, for example 24h." placeholder:"SPAN"`
	Query   string        `short:"q" name:"q" help:"A text that it contains." placeholder:"TEXT"`
	JSON    bool          `name:"json" help:"Print the gateway's answer as JSON."`
	Flags
}

type replayEventsCommand struct {
	selectFlags
	Source string `help:"The sender or carrier, for example kannel." placeholder:"NAME"`
	Device string `help:"The device, or another part of what was posted." placeholder:"TEXT"`
	DryRun bool   `help:"Show what would change, and change nothing."`
	Rules  bool   `help:"Have rules look at the frames again; without it a replay raises no alarm and forwards nothing."`
}

type replayDeliveriesCommand struct {
	selectFlags
	Relay            string `help:"The relay's id." placeholder:"ID"`
	Number           string `help:"The complete originator or destination." placeholder:"N"`
	Target           string `help:"A part of the URL or address." placeholder:"TEXT"`
	Reason           string `help:"A part of the reason." placeholder:"TEXT"`
	IncludeDelivered bool   `help:"Also deliveries that were delivered."`
}

// Run replays events and prints how many there were.
func (r replayEventsCommand) Run(w Environment) error {
	s := r.selection()
	s.put("source", r.Source)
	s.put("device", r.Device)
	s.put("dry_run", r.DryRun)
	s.put("rules", r.Rules)
	return r.replay(w, "events", s)
}

// Run replays deliveries and prints how many there were.
func (r replayDeliveriesCommand) Run(w Environment) error {
	s := r.selection()
	s.put("relay", r.Relay)
	s.put("number", r.Number)
	s.put("target", r.Target)
	s.put("reason", r.Reason)
	s.put("include_delivered", r.IncludeDelivered)
	return r.replay(w, "deliveries", s)
}

// selection is the body of a replay.
type selection map[string]any

// put adds a field that is given.
func (s selection) put(name string, v any) {
	if v != "" && v != false {
		s[name] = v
	}
}

func (f selectFlags) selection() selection {
	s := selection{}
	if len(f.IDs) > 0 {
		s["ids"] = f.IDs
	}
	s.put("state", f.State)
	s.put("account", f.Account)
	s.put("kind", f.Kind)
	s.put("from", f.From)
	s.put("to", f.To)
	s.put("q", f.Query)
	if f.Last > 0 && f.From == "" {
		s["from"] = time.Now().UTC().Add(-f.Last).Format(time.RFC3339)
	}
	return s
}

// replay asks the gateway and prints its count.
func (f selectFlags) replay(w Environment, what string, s selection) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	answer, err := f.Ask(w, "the replay", http.MethodPost, "/admin/"+what+"/replay", body)
	if err != nil {
		return err
	}
	if f.JSON {
		return printLine(w, "%s", answer)
	}
	if s["dry_run"] == true {
		return printDryRun(w.Stdout, answer)
	}
	var done struct{ Count int }
	if err := json.Unmarshal(answer, &done); err != nil {
		return fmt.Errorf("the replay: %w: %s", err, strings.TrimSpace(string(answer)))
	}
	return printLine(w, "%d %s", done.Count, what)
}

// dryRun is the answer to a dry run, as the admin API documents it.
type dryRun struct {
	Count, Examined int
	Events          struct{ Done, Quarantined, Differ int }
	Readings        struct{ Added, Changed, Unchanged, Stays int }
	Data            []struct {
		ID, State string
		NewState  string `json:"new_state"`
		NewReason string `json:"new_reason"`
		Devices   []struct {
			Identifier string
			Readings   []struct {
				Time, Key, Effect string
				Old, New          any
			}
		}
	}
	More bool
}

// printDryRun writes the result of a dry run as text.
func printDryRun(to io.Writer, answer []byte) error {
	var r dryRun
	if err := json.Unmarshal(answer, &r); err != nil {
		return fmt.Errorf("the replay: %w: %s", err, strings.TrimSpace(string(answer)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d events\n", r.Count)
	if r.Examined > 0 {
		fmt.Fprintf(&b, "%d examined: %d would be stored, %d quarantined; %d differ\n", r.Examined, r.Events.Done, r.Events.Quarantined, r.Events.Differ)
		fmt.Fprintf(&b, "readings: %d added, %d changed, %d unchanged, %d remain\n", r.Readings.Added, r.Readings.Changed, r.Readings.Unchanged, r.Readings.Stays)
	}
	for _, e := range r.Data {
		fmt.Fprintf(&b, "%s %s -> %s %s\n", e.ID, e.State, e.NewState, e.NewReason)
		for _, d := range e.Devices {
			for _, v := range d.Readings {
				fmt.Fprintf(&b, "  %s %s %s %s: %v -> %v\n", d.Identifier, v.Time, v.Key, v.Effect, word(v.Old), word(v.New))
			}
		}
	}
	if r.More {
		b.WriteString("…\n")
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// word returns a number or a text as it is, "nothing" for nil.
func word(v any) any {
	if v == nil {
		return "nothing"
	}
	return v
}
