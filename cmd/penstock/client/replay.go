package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Replay makes a running gateway process events again or attempt deliveries
// again.
type Replay struct {
	Events     replayEventsCommand     `cmd:"" help:"Process events again: decode, route and store them with the current configuration."`
	Deliveries replayDeliveriesCommand `cmd:"" help:"Attempt dead deliveries again."`
}

// span is a duration that may be in days.
type span time.Duration

// UnmarshalText reads a positive span such as 90m, 24h or 7d.
func (s *span) UnmarshalText(text []byte) error {
	days, inDays := strings.CutSuffix(string(text), "d")
	d, err := time.ParseDuration(string(text))
	if n, err2 := strconv.ParseUint(days, 10, 16); inDays && err2 == nil {
		d, err = time.Duration(n)*24*time.Hour, nil
	}
	if err != nil || d <= 0 {
		return fmt.Errorf("must be a span such as 90m, 24h or 7d, not %q", text)
	}
	*s = span(d)
	return nil
}

// selectFlags are the filters that events and deliveries have in common.
type selectFlags struct {
	IDs     []string `arg:"" optional:"" name:"id" help:"Ids; with filters, only those that match both."`
	State   string   `help:"The state." placeholder:"STATE"`
	Account string   `help:"The account's name or id." placeholder:"ACCOUNT"`
	Kind    string   `help:"The kind: uplink, sms, receipt or cdr for events; relay, receipt or callback for deliveries." placeholder:"KIND"`
	From    string   `help:"Start of the time range, RFC 3339 or YYYY-MM-DD HH:MM:SS in UTC." placeholder:"TIME"`
	To      string   `help:"End of the time range, inclusive." placeholder:"TIME"`
	Last    span     `help:"Instead of --from: start of the time range before now, for example 24h or 7d." placeholder:"SPAN"`
	Query   string   `short:"q" name:"q" help:"A text that it contains." placeholder:"TEXT"`
	Flags
}

type replayEventsCommand struct {
	selectFlags
	Source string `help:"The sender or carrier, for example kannel." placeholder:"NAME"`
	Device string `help:"The device, or another part of what was posted." placeholder:"TEXT"`

	Decoder string `help:"Only frames of devices with this decoder." placeholder:"ID"`
	Relay   string `help:"Only messages that this relay takes." placeholder:"ID"`
	Reason  string `help:"A part of the reason." placeholder:"TEXT"`
	DryRun  bool   `help:"Show what would change, and change nothing."`
	Rules   bool   `help:"Evaluate rules on the frames again; without it a replay raises no alarm and forwards nothing."`
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
	return r.replay(w, "events", "event", map[string]any{
		"source": r.Source, "device": r.Device, "decoder": r.Decoder, "relay": r.Relay, "reason": r.Reason, "dry_run": r.DryRun, "rules": r.Rules,
	})
}

// Run replays deliveries and prints how many there were.
func (r replayDeliveriesCommand) Run(w Environment) error {
	return r.replay(w, "deliveries", "delivery", map[string]any{
		"relay": r.Relay, "number": r.Number, "target": r.Target, "reason": r.Reason, "include_delivered": r.IncludeDelivered,
	})
}

// replay makes the gateway replay what the common filters and more fields select, and
// prints its count; one is the singular of what.
func (f selectFlags) replay(w Environment, label, text string, fields map[string]any) error {
	if f.Last != 0 && f.From != "" {
		return errors.New("--last and --from exclude each other")
	}
	if f.Last > 0 {
		f.From = time.Now().UTC().Add(-time.Duration(f.Last)).Format(time.RFC3339)
	}
	maps.Copy(fields, map[string]any{"state": f.State, "account": f.Account, "kind": f.Kind, "from": f.From, "to": f.To, "q": f.Query})
	if len(f.IDs) > 0 {
		fields["ids"] = f.IDs
	}
	body, err := json.Marshal(filled(fields))
	if err != nil {
		return err
	}
	answer, err := f.Ask(w, "the replay", http.MethodPost, "/admin/"+label+"/replay", body)
	if err != nil {
		return err
	}
	if f.JSON {
		return printLine(w, "%s", answer)
	}
	var done dryRun
	if err := json.Unmarshal(answer, &done); err != nil {
		return fmt.Errorf("the replay: %w: %s", err, strings.TrimSpace(string(answer)))
	}
	if fields["dry_run"] == true {
		return printDryRun(w.Stdout, done)
	}
	line := counted(done.Count, text, label)
	if r := done.Readings; r.Added+r.Changed+r.Unchanged+r.Stays > 0 {
		line += fmt.Sprintf("\nreadings: %d added, %d changed, %d unchanged, %d remain", r.Added, r.Changed, r.Unchanged, r.Stays)
	}
	if done.Deliveries+done.Alarms > 0 {
		line += fmt.Sprintf("\n%s created, %s raised", counted(done.Deliveries, "delivery", "deliveries"), counted(done.Alarms, "alarm", "alarms"))
	}
	return printLine(w, "%s", line)
}

// dryRun is the answer to a dry run or a replay, as the admin API documents it.
type dryRun struct {
	Count, Examined    int
	Rules              bool
	Deliveries, Alarms int
	Events             struct{ Done, Quarantined, Differ int }
	Readings           struct{ Added, Changed, Unchanged, Stays int }
	Data               []struct {
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
	More       bool
	SearchedTo string `json:"searched_to"`
}

// printDryRun writes the result of a dry run as text.
func printDryRun(writer io.Writer, r dryRun) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", counted(r.Count, "event", "events"))
	if r.Examined > 0 && r.Rules {
		b.WriteString("rules would look at the frames\n")
	}
	if r.SearchedTo != "" {
		fmt.Fprintf(&b, "those before %s were not examined: narrow the selection\n", r.SearchedTo)
	}
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
	_, err := io.WriteString(writer, b.String())
	return err
}

// word returns a number or a text as it is, "nothing" for nil.
func word(v any) any {
	if v == nil {
		return "nothing"
	}
	return v
}
