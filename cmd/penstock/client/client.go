// Package client provides the commands of penstock that call the HTTP API of a running gateway.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/penstock/penstock/config"
)

// Environment has the inputs and outputs of a command.
type Environment struct {
	Context        context.Context
	Variables      []string // NAME=value
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Version        string // of the program
}

// The files of the data directory with the admin token, and with the token of the demo account.
const (
	AdminTokenFile = "admin-token"
	DemoTokenFile  = "demo-token"
)

// Flags select the gateway, the credentials and the output of a command.
type Flags struct {
	Server     string `aliases:"url" help:"The gateway's URL; default: PENSTOCK_SERVER, else the listen address of the configuration." placeholder:"URL"`
	AdminToken string `help:"The admin token; default: PENSTOCK_ADMIN_TOKEN, else that of the configuration or of the data directory." placeholder:"T"`
	JSON       bool   `name:"json" help:"Print JSON, for scripts."`
}

// serverURL returns the URL of the gateway: the flag, else PENSTOCK_SERVER, else defaultURL. A URL
// without a scheme becomes an http URL.
func serverURL(env Environment, flag, defaultURL string) string {
	server := flag
	for _, v := range env.Variables {
		if value, ok := strings.CutPrefix(v, config.ServerVariable+"="); ok && server == "" {
			server = value
		}
	}
	server = strings.TrimRight(cmp.Or(server, defaultURL), "/")
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	return server
}

// Request makes a request to the admin API of the gateway and returns the body of the answer. Unless the
// status is 2xx or in accepted, it returns an error that begins with label and lists the invalid
// fields.
func (f Flags) Request(env Environment, label, method, target string, data []byte, accepted ...int) ([]byte, error) {
	c, err := config.Load("", env.Variables)
	if err != nil {
		return nil, err
	}
	f.AdminToken = cmp.Or(f.AdminToken, c.AdminToken)
	if f.AdminToken == "" {
		if f.AdminToken, err = readTokenFile(c, AdminTokenFile); err != nil {
			return nil, fmt.Errorf("no admin token: set --admin-token or PENSTOCK_ADMIN_TOKEN (%w)", err)
		}
	}
	server := serverURL(env, f.Server, c.LocalURL())
	status, body, err := do(env, label, method, server, target, data, http.Header{"Authorization": {"Bearer " + f.AdminToken}})
	if err != nil {
		return nil, err
	}
	if status == http.StatusUnauthorized {
		return nil, fmt.Errorf("%s: %w: the gateway at %s has another admin token: set --admin-token, or run the command with the settings and data directory of the gateway", label, errToken, server)
	}
	if status/100 != 2 && !slices.Contains(accepted, status) {
		return nil, refusal(label, status, body)
	}
	return body, nil
}

// errToken means that the gateway refuses the admin token.
var errToken = errors.New("401 Unauthorized")

// readTokenFile reads a token from the data directory.
func readTokenFile(c config.Config, name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(c.DataDir, name))
	return strings.TrimSpace(string(b)), err
}

// do makes a request, reads the answer and shows the progress. The timeout is ten minutes, because a
// replay can take minutes.
func do(env Environment, label, method, server, target string, data []byte, header http.Header) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(env.Context, 10*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, server+target, bytes.NewReader(data))
	if err != nil {
		return 0, nil, err
	}
	req.Header = header
	progress := NewProgress(env, label, kilobytes)
	defer progress.End()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, unreachable(server, err)
	}
	defer func() { _ = resp.Body.Close() }()
	progress.Expect(max(0, resp.ContentLength))
	body, err = io.ReadAll(progress.reader(io.LimitReader(resp.Body, 64<<20)))
	return resp.StatusCode, body, err
}

// unreachable adds advice to the error of a failed connection.
func unreachable(server string, err error) error {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return fmt.Errorf("no gateway answers at %s: start it, or set its URL with --server: %w", server, dial)
	}
	return err
}

// refusal returns the error of an answer, with a line for each invalid field.
func refusal(label string, code int, body []byte) error {
	const notFound = "Not found." // the message for missing records
	status := fmt.Sprintf("%d %s", code, http.StatusText(code))
	var answer struct {
		Message string              `json:"message"`
		Errors  map[string][]string `json:"errors"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Message == "" {
		return fmt.Errorf("%s: %s: %s", label, status, body)
	}
	if code == http.StatusNotFound && answer.Message == notFound {
		return fmt.Errorf("%s: not found", label)
	}
	if len(answer.Errors) == 0 {
		return fmt.Errorf("%s: %s: %s", label, status, answer.Message)
	}
	lines := []string{label + " was refused:"}
	for _, path := range slices.Sorted(maps.Keys(answer.Errors)) {
		for _, reason := range answer.Errors[path] {
			lines = append(lines, "  "+strings.TrimPrefix(path+": "+reason, ": "))
		}
	}
	return errors.New(strings.Join(lines, "\n"))
}

func dataOf[T any](label string, answer []byte) (T, error) {
	var a struct {
		Data T `json:"data"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return a.Data, fmt.Errorf("%s: unexpected answer, perhaps not from a gateway: %w", label, err)
	}
	return a.Data, nil
}

// show makes a request to the admin API of the gateway, with fields as its body unless they are nil.
// It prints the data of the answer as JSON with --json, else with printText.
func show[T any](f Flags, env Environment, label, method, target string, fields map[string]any, printText func(T) error) error {
	var body []byte
	if fields != nil {
		var err error
		if body, err = json.Marshal(fields); err != nil {
			return err
		}
	}
	answer, err := f.Request(env, label, method, target, body)
	if err != nil {
		return err
	}
	if f.JSON {
		raw, err := dataOf[json.RawMessage](label, answer)
		if err != nil {
			return err
		}
		return printLine(env, "%s", raw)
	}
	data, err := dataOf[T](label, answer)
	if err != nil {
		return err
	}
	return printText(data)
}

// ReadFile reads a file, or the standard input for "-".
func ReadFile(env Environment, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(env.Stdin, 8<<20+1))
	}
	return os.ReadFile(name)
}

func printLine(env Environment, format string, args ...any) error {
	_, err := fmt.Fprintf(env.Stdout, format+"\n", args...)
	return err
}

// countText returns a number with its noun.
func countText[N int | int64](n N, singular, plural string) string {
	if n == 1 {
		plural = singular
	}
	return fmt.Sprintf("%d %s", n, plural)
}

// printRecords prints a table with a row for each record, or emptyText if there are none.
func printRecords[T any](env Environment, records []T, emptyText string, head []string, row func(T) []string) error {
	if len(records) == 0 {
		return printLine(env, "%s", emptyText)
	}
	rows := [][]string{head}
	for _, record := range records {
		rows = append(rows, row(record))
	}
	return printTable(env.Stdout, rows)
}

// printTable prints rows of cells in columns. Line breaks and tabs in cells become spaces.
func printTable(writer io.Writer, rows [][]string) error {
	table := tabwriter.NewWriter(writer, 0, 0, 2, ' ', 0)
	for _, cells := range rows {
		line := make([]string, len(cells))
		for i, cell := range cells {
			line[i] = strings.Join(strings.Fields(cell), " ")
		}
		_, _ = fmt.Fprintln(table, strings.Join(line, "\t"))
	}
	return table.Flush()
}

// withoutEmpty deletes the fields that are empty or false, and returns fields.
func withoutEmpty(fields map[string]any) map[string]any {
	maps.DeleteFunc(fields, func(_ string, value any) bool { return value == "" || value == false })
	return fields
}

// queryOf returns a query without the parameters that have an empty value.
func queryOf(values map[string]string) url.Values {
	query := url.Values{}
	for name, value := range values {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}
