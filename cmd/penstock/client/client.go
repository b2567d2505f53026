// Package client has the commands of penstock that are HTTP clients of a running gateway.
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

// Environment is the environment of a command.
type Environment struct {
	Context        context.Context
	Variables      []string // NAME=value
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Version        string // of the program
}

// The files of the data directory with the gateway's admin token, and with a token of
// the demo account.
const (
	AdminTokenFile = "admin-token"
	DemoTokenFile  = "demo-token"
)

// Flags select the running gateway, the credentials of a command and its output.
type Flags struct {
	Server     string `aliases:"url" help:"The gateway's URL; default: PENSTOCK_SERVER, else the listen address of the configuration." placeholder:"URL"`
	AdminToken string `help:"The admin token; default: PENSTOCK_ADMIN_TOKEN, else the configuration's, or the one in the data directory." placeholder:"T"`
	JSON       bool   `name:"json" help:"Print JSON, for scripts."`
}

// serverURL returns the URL of the gateway for a command: that of its flag, else that of
// PENSTOCK_SERVER, else local. http is assumed if it has no scheme.
func serverURL(w Environment, flag, local string) string {
	server := flag
	for _, v := range w.Variables {
		if value, ok := strings.CutPrefix(v, config.ServerVariable+"="); ok && server == "" {
			server = value
		}
	}
	server = strings.TrimRight(cmp.Or(server, local), "/")
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	return server
}

// Ask makes a request to the gateway's admin API and returns the body of a success.
// An error begins with label and lists the invalid fields; also may be further codes of
// a success.
func (a Flags) Ask(w Environment, label, method, target string, data []byte, also ...int) ([]byte, error) {
	c, err := config.Load("", w.Variables)
	if err != nil {
		return nil, err
	}
	a.AdminToken = cmp.Or(a.AdminToken, c.AdminToken)
	if a.AdminToken == "" {
		if a.AdminToken, err = tokenFile(c, AdminTokenFile); err != nil {
			return nil, fmt.Errorf("no admin token: give --admin-token or PENSTOCK_ADMIN_TOKEN (%w)", err)
		}
	}
	server := serverURL(w, a.Server, c.LocalURL())
	status, body, err := do(w, label, method, server, target, data, http.Header{"Authorization": {"Bearer " + a.AdminToken}})
	if err != nil {
		return nil, err
	}
	if status == http.StatusUnauthorized {
		return nil, fmt.Errorf("%s: %w: the gateway at %s has another admin token: give its token with --admin-token, or run the command with its settings and data directory", label, errToken, server)
	}
	if status != http.StatusOK && !slices.Contains(also, status) {
		return nil, refusal(label, status, body)
	}
	return body, nil
}

// errToken means that the gateway refuses the admin token.
var errToken = errors.New("401 Unauthorized")

// tokenFile reads a token from the data directory.
func tokenFile(c config.Config, name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(c.DataDir, name))
	return strings.TrimSpace(string(b)), err
}

// do makes a request and reads the answer. It may take ten minutes, as a replay does, and
// shows its progress.
func do(w Environment, label, method, server, target string, data []byte, header http.Header) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(w.Context, 10*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, server+target, bytes.NewReader(data))
	if err != nil {
		return 0, nil, err
	}
	req.Header = header
	progress := NewProgress(w, label, kilobytes)
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

// unreachable adds what to do to the error of a connection that could not be made.
func unreachable(server string, err error) error {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return fmt.Errorf("no gateway answers at %s: start it, or name its URL with --server: %w", server, dial)
	}
	return err
}

// refusal lists what the gateway found wrong, one line per field.
func refusal(label string, code int, body []byte) error {
	const notFound = "Not found." // the message of every record that is missing
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
		for _, text := range answer.Errors[path] {
			lines = append(lines, "  "+strings.TrimPrefix(path+": "+text, ": "))
		}
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}

// dataOf returns the data of an answer.
func dataOf[T any](label string, answer []byte) (T, error) {
	var a struct {
		Data T `json:"data"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return a.Data, fmt.Errorf("%s: the answer is not that of a gateway: %w", label, err)
	}
	return a.Data, nil
}

// ask makes a request to the gateway's admin API, with fields as its body unless they are
// nil, and returns the data of the answer. It prints the data if the output is JSON.
func ask[T any](a Flags, w Environment, label, method, target string, fields map[string]any, also ...int) (data T, err error) {
	var body []byte
	if fields != nil {
		if body, err = json.Marshal(fields); err != nil {
			return data, err
		}
	}
	answer, err := a.Ask(w, label, method, target, body, also...)
	if err != nil {
		return data, err
	}
	if a.JSON {
		raw, err := dataOf[json.RawMessage](label, answer)
		if err != nil {
			return data, err
		}
		if err := printLine(w, "%s", raw); err != nil {
			return data, err
		}
	}
	return dataOf[T](label, answer)
}

// ReadFile reads a file, or the standard input for "-".
func ReadFile(w Environment, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(w.Stdin, 8<<20+1))
	}
	return os.ReadFile(name)
}

func printLine(w Environment, format string, args ...any) error {
	_, err := fmt.Fprintf(w.Stdout, format+"\n", args...)
	return err
}

// counted returns a number with its noun, which is singular for 1.
func counted[N int | int64](n N, text, several string) string {
	if n == 1 {
		several = text
	}
	return fmt.Sprintf("%d %s", n, several)
}

// printRecords prints a table with a row for each record, or that there are none.
func printRecords[T any](w Environment, list []T, text string, head []string, row func(T) []string) error {
	if len(list) == 0 {
		return printLine(w, "%s", text)
	}
	rows := [][]string{head}
	for _, record := range list {
		rows = append(rows, row(record))
	}
	return printTable(w.Stdout, rows)
}

// printTable prints rows of cells in columns. Line breaks and tabs of a cell become blanks.
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

// filled returns the fields of a request without those that are empty or false.
func filled(fields map[string]any) map[string]any {
	maps.DeleteFunc(fields, func(_ string, value any) bool { return value == "" || value == false })
	return fields
}

// given returns the parameters of a query that have a value.
func given(values map[string]string) url.Values {
	query := url.Values{}
	for name, value := range values {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}
