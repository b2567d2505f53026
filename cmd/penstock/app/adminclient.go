package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/config"
)

// adminFlags select the running gateway and the credentials of a command.
type adminFlags struct {
	Server     string `aliases:"url" help:"The gateway's URL; default: the listen address of the configuration." placeholder:"URL"`
	AdminToken string `help:"The admin token; default: the configuration's, or the one in the data directory." placeholder:"T"`
}

// askTime is the timeout of a request: a replay may take long.
const askTime = 10 * time.Minute

// ask makes a request to the gateway's admin API and returns the body of a success.
// An error begins with what and lists the invalid fields; also may be further codes of
// a success.
func (a adminFlags) ask(w Environment, what, method, target string, data []byte, also ...int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(w.Context, askTime)
	defer cancel()
	req, err := a.request(ctx, w, method, target, data)
	if err != nil {
		return nil, err
	}
	shown := newProgress(w, what, kilobytes)
	defer shown.end()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	shown.expect(max(0, resp.ContentLength))
	body, err := io.ReadAll(shown.reader(io.LimitReader(resp.Body, 64<<20)))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK && !slices.Contains(also, resp.StatusCode) {
		return nil, refusal(what, resp.Status, body)
	}
	return body, nil
}

func (a adminFlags) request(ctx context.Context, w Environment, method, target string, data []byte) (*http.Request, error) {
	c, err := config.Load("", w.Variables)
	if err != nil {
		return nil, err
	}
	if a.Server == "" {
		a.Server = c.LocalURL()
	}
	if a.AdminToken == "" {
		a.AdminToken = c.AdminToken
	}
	if a.AdminToken == "" {
		kept, err := os.ReadFile(filepath.Join(c.DataDir, adminTokenFile))
		if err != nil {
			return nil, fmt.Errorf("no admin token: give --admin-token or PENSTOCK_ADMIN_TOKEN (%w)", err)
		}
		a.AdminToken = strings.TrimSpace(string(kept))
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(a.Server, "/")+target, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.AdminToken)
	return req, nil
}

// refusal lists what the gateway found wrong, one line per field.
func refusal(what, status string, body []byte) error {
	var answer struct {
		Message string              `json:"message"`
		Errors  map[string][]string `json:"errors"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Message == "" {
		return fmt.Errorf("%s: %s: %s", what, status, body)
	}
	if len(answer.Errors) == 0 {
		return fmt.Errorf("%s: %s: %s", what, status, answer.Message)
	}
	lines := []string{what + " was refused:"}
	for _, path := range slices.Sorted(maps.Keys(answer.Errors)) {
		for _, text := range answer.Errors[path] {
			lines = append(lines, "  "+path+": "+text)
		}
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}
