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

// Replay makes a running gateway process events or attempt deliveries again.
type Replay struct {
	Events     replayEventsCommand     `cmd:"" help:"Process events again: decode, route and store them with the current configuration."`
	Deliveries replayDeliveriesCommand `cmd:"" help:"Attempt dead deliveries again."`
}

// daysDuration is a duration that can also be given in days.
type daysDuration time.Duration

// UnmarshalText parses a positive duration such as 90m, 24h or 7d.
func (d *daysDuration) UnmarshalText(text []byte) error {
	duration, err := time.ParseDuration(string(text))
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		duration = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || duration <= 0 {
		return fmt.Errorf("must be a duration such as 90m, 24h or 7d, not %q", text)
	}
	*d = daysDuration(duration)
	return nil
}

// selectFlags are the filters for events and deliveries.
type selectFlags struct {
	IDs     []string     `arg:"" optional:"" name:"id" help:"Ids; with filters, only records that match both."`
	State   string       `help:"The state." placeholder:"STATE"`
	Account string       `help:"The account's name or id." placeholder:"ACCOUNT"`
	Kind    string       `help:"The kind: uplink, sms, receipt or cdr for events; relay, receipt or callback for deliveries." placeholder:"KIND"`
	From    string       `help:"Start of the time range, RFC 3339 or YYYY-MM-DD HH:MM:SS in UTC." placeholder:"TIME"`
	To      string       `help:"End of the time range, inclusive." placeholder:"TIME"`
	Last    daysDuration `help:"In place of --from: start of the time range as a duration before now, for example 24h or 7d." placeholder:"DURATION"`
	Query   string       `short:"q" name:"q" help:"A text in the record." placeholder:"TEXT"`
	Flags
}

type replayEventsCommand struct {
	selectFlags
	Source string `help:"The sender or carrier, for example kannel." placeholder:"NAME"`
	Device string `help:"The identifier of a device." placeholder:"ID"`

	Decoder string `help:"Only frames of devices with this decoder." placeholder:"ID"`
	Relay   string `help:"Only messages that go to this relay." placeholder:"ID"`
	Reason  string `help:"A part of the reason." placeholder:"TEXT"`
	DryRun  bool   `help:"Print the changes without making them."`
	Rules   bool   `help:"Evaluate rules on the frames again; without it a replay raises no alarms and forwards no frames."`
}

type replayDeliveriesCommand struct {
	selectFlags
	Relay            string `help:"The relay's id." placeholder:"ID"`
	Number           string `help:"The complete originator or destination." placeholder:"N"`
	Target           string `help:"A part of the URL or address." placeholder:"TEXT"`
	Reason           string `help:"A part of the reason." placeholder:"TEXT"`
	IncludeDelivered bool   `help:"Also replay successful deliveries."`
}

// Run replays events and prints their number.
func (r replayEventsCommand) Run(env Environment) error {
	return r.replay(env, "events", "event", map[string]any{
		"source": r.Source, "device": r.Device, "decoder": r.Decoder, "relay": r.Relay, "reason": r.Reason, "dry_run": r.DryRun, "rules": r.Rules,
	})
}

// Run replays deliveries and prints their number.
func (r replayDeliveriesCommand) Run(env Environment) error {
	return r.replay(env, "deliveries", "delivery", map[string]any{
		"relay": r.Relay, "number": r.Number, "target": r.Target, "reason": r.Reason, "include_delivered": r.IncludeDelivered,
	})
}

// replay replays the records that the flags and fields select, and prints their number. plural
// and singular are the noun of the records.
func (f selectFlags) replay(env Environment, plural, singular string, fields map[string]any) error {
	if f.Last != 0 && f.From != "" {
		return errors.New("--last and --from cannot be used together")
	}
	if f.Last > 0 {
		f.From = time.Now().UTC().Add(-time.Duration(f.Last)).Format(time.RFC3339)
	}
	maps.Copy(fields, map[string]any{"state": f.State, "account": f.Account, "kind": f.Kind, "from": f.From, "to": f.To, "q": f.Query})
	if len(f.IDs) > 0 {
		fields["ids"] = f.IDs
	}
	body, err := json.Marshal(withoutEmpty(fields))
	if err != nil {
		return err
	}
	answer, err := f.Request(env, "the replay", http.MethodPost, "/admin/"+plural+"/replay", body)
	if err != nil {
		return err
	}
	if f.JSON {
		return printLine(env, "%s", answer)
	}
	var result replayAnswer
	if err := json.Unmarshal(answer, &result); err != nil {
		return fmt.Errorf("the replay: %w: %s", err, strings.TrimSpace(string(answer)))
	}
	if fields["dry_run"] == true {
		return printDryRun(env.Stdout, result)
	}
	line := countText(result.Count, singular, plural)
	if r := result.Readings; r.Added+r.Changed+r.Unchanged+r.Stays > 0 {
		line += fmt.Sprintf("\nreadings: %d added, %d changed, %d unchanged, %d remain", r.Added, r.Changed, r.Unchanged, r.Stays)
	}
	if result.Deliveries+result.Alarms > 0 {
		line += fmt.Sprintf("\n%s created, %s raised", countText(result.Deliveries, "delivery", "deliveries"), countText(result.Alarms, "alarm", "alarms"))
	}
	return printLine(env, "%s", line)
}

// replayAnswer is the answer to a replay or its dry run.
type replayAnswer struct {
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
func printDryRun(writer io.Writer, r replayAnswer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", countText(r.Count, "event", "events"))
	if r.Examined > 0 && r.Rules {
		b.WriteString("rules would be evaluated on the frames\n")
	}
	if r.SearchedTo != "" {
		fmt.Fprintf(&b, "events before %s were not examined: narrow the selection\n", r.SearchedTo)
	}
	if r.Examined > 0 {
		fmt.Fprintf(&b, "%d examined: %d would be stored, %d quarantined; %d differ\n", r.Examined, r.Events.Done, r.Events.Quarantined, r.Events.Differ)
		fmt.Fprintf(&b, "readings: %d added, %d changed, %d unchanged, %d remain\n", r.Readings.Added, r.Readings.Changed, r.Readings.Unchanged, r.Readings.Stays)
	}
	for _, e := range r.Data {
		fmt.Fprintf(&b, "%s %s -> %s %s\n", e.ID, e.State, e.NewState, e.NewReason)
		for _, d := range e.Devices {
			for _, v := range d.Readings {
				fmt.Fprintf(&b, "  %s %s %s %s: %v -> %v\n", d.Identifier, v.Time, v.Key, v.Effect, valueOrNothing(v.Old), valueOrNothing(v.New))
			}
		}
	}
	if r.More {
		b.WriteString("…\n")
	}
	_, err := io.WriteString(writer, b.String())
	return err
}

// valueOrNothing returns "nothing" for nil.
func valueOrNothing(v any) any {
	if v == nil {
		return "nothing"
	}
	return v
}
