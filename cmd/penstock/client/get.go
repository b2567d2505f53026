package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/config/strict"
)

// Get lists records of a running gateway, or shows one record.
type Get struct {
	Kind    string `arg:"" enum:"accounts,alarms,credit,decoders,devices,messages,relays,rules,sims" help:"accounts, alarms, credit, decoders, devices, messages, relays, rules or sims."`
	ID      string `arg:"" optional:"" help:"The id of a record, to print all its fields; for credit the account, to list its changes."`
	Account string `help:"The account's name or id; required for messages." placeholder:"ACCOUNT"`
	State   string `help:"The state; for alarms, messages and sims." placeholder:"STATE"`
	Query   string `short:"q" name:"q" help:"A text in the record, for devices, relays and sims; the number, for messages." placeholder:"TEXT"`
	Limit   int    `default:"100" help:"The largest number of records to list." placeholder:"N"`
	Flags
}

// collection describes the records of a kind in the admin API.
type collection struct {
	path    string
	columns []string // the fields that a table shows
	query   string   // name of the parameter for --q; empty if there is none
	single  bool     // whether path/id returns a record; otherwise Get searches the list for the id
	states  bool     // whether the list has the parameter state
}

func collections() map[string]collection {
	return map[string]collection{
		"accounts": {path: "/admin/accounts", columns: []string{"id", "name", "credit", "permissions", "document"}, single: true},
		"alarms":   {path: "/admin/alarms", columns: []string{"id", "account", "rule_id", "device_id", "state", "raised_at", "acknowledged_by"}, states: true},
		"credit":   {path: "/admin/balances", columns: []string{"account", "account_name", "balance"}},
		"decoders": {path: "/admin/decoders", columns: []string{"id", "account_name", "name", "type", "codec", "keys"}, single: true},
		"devices":  {path: "/admin/devices", columns: []string{"id", "account_name", "identifier", "name", "decoder_id", "last_seen_at", "alarms"}, query: "q", single: true},
		"messages": {path: "/admin/messages", columns: []string{"id", "originator", "destination", "received_at", "code"}, query: "number", states: true},
		"relays":   {path: "/admin/relays", columns: []string{"id", "account_name", "kind", "number", "action", "parameters"}, query: "q"},
		"rules":    {path: "/admin/rules", columns: []string{"id", "account", "name", "enabled", "on", "when"}},
		"sims":     {path: "/admin/sims", columns: []string{"iccid", "account_name", "msisdn", "state", "pool_id", "month_bytes"}, query: "q", single: true, states: true},
	}
}

// Run prints a table of the records, or all fields of one record.
func (g Get) Run(env Environment) error {
	kind, query := collections()[g.Kind], queryOf(map[string]string{"account": g.Account})
	label := "get " + g.Kind
	if g.Kind == "credit" && g.ID != "" {
		kind = collection{path: "/admin/credit", columns: []string{"sequence", "at", "credits", "balance", "reason", "reference"}}
		query.Set("account", g.ID)
		g.ID = ""
	}
	for flag, parameter := range map[string]struct {
		value, name string
		supported   bool
	}{"--state": {g.State, "state", kind.states}, "--q": {g.Query, kind.query, kind.query != ""}} {
		switch {
		case parameter.value == "":
		case !parameter.supported:
			return fmt.Errorf("%s does not support %s", label, flag)
		default:
			query.Set(parameter.name, parameter.value)
		}
	}
	if g.ID != "" && kind.single {
		return g.showRecord(env, label+" "+g.ID, kind.path+"/"+url.PathEscape(g.ID)+"?"+query.Encode())
	}
	if g.Kind == "messages" && g.ID != "" {
		query.Set("ids", g.ID)
	}
	if g.Kind != "accounts" {
		query.Set("limit", strconv.Itoa(g.Limit))
	}
	answer, err := g.Request(env, label, http.MethodGet, kind.path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	var page struct {
		Data []map[string]any
		Meta struct{ Next any }
	}
	if err := json.Unmarshal(answer, &page); err != nil {
		return fmt.Errorf("%s: unexpected answer, perhaps not from a gateway: %w", label, err)
	}
	if g.ID != "" {
		i := slices.IndexFunc(page.Data, func(record map[string]any) bool { return fmt.Sprint(record["id"]) == g.ID })
		if i < 0 {
			return fmt.Errorf("%s: %s is not among the first %d records", label, g.ID, len(page.Data))
		}
		return g.print(env, page.Data[i])
	}
	if g.JSON {
		return printLine(env, "%s", answer)
	}
	heads := make([]string, len(kind.columns))
	for i, column := range kind.columns {
		heads[i] = strings.ToUpper(strings.ReplaceAll(column, "_", " "))
	}
	err = printRecords(env, page.Data, "no "+g.Kind, heads, func(record map[string]any) []string {
		cells := make([]string, len(kind.columns))
		for i, column := range kind.columns {
			cells[i] = cellOf(record[column])
		}
		return cells
	})
	if cursor := page.Meta.Next; err == nil && cursor != nil && cursor != "" {
		_, err = fmt.Fprintf(env.Stderr, "there are more than these %d records: use --limit or filters\n", len(page.Data))
	}
	return err
}

// showRecord requests a record and prints it.
func (g Get) showRecord(env Environment, label, target string) error {
	answer, err := g.Request(env, label, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	var record map[string]any
	if err := json.Unmarshal(answer, &record); err != nil {
		return fmt.Errorf("%s: unexpected answer, perhaps not from a gateway: %w", label, err)
	}
	if data, ok := record["data"].(map[string]any); ok {
		record = data
	}
	return g.print(env, record)
}

// print prints a record as YAML or JSON.
func (g Get) print(env Environment, record map[string]any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if g.JSON {
		return printLine(env, "%s", text)
	}
	if text, err = strict.YAML(text); err == nil {
		_, err = env.Stdout.Write(text)
	}
	return err
}

// cellOf formats a JSON value as the cell of a table.
func cellOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "-"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		texts := make([]string, len(v))
		for i := range v {
			texts[i] = cellOf(v[i])
		}
		return cellOf(strings.Join(texts, ","))
	case string:
		return orDash(&v)
	}
	return fmt.Sprint(value)
}
