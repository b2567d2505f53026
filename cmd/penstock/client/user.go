package client

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"golang.org/x/term"
)

// User manages the users of the console and the admin API.
type User struct {
	Add    userAddCommand    `cmd:"" help:"Add a user. The password is read from standard input, or entered at a prompt."`
	List   userListCommand   `cmd:"" help:"List the users."`
	Set    userSetCommand    `cmd:"" help:"Change a user, and end the user's sessions."`
	Remove userRemoveCommand `cmd:"" help:"Remove a user, and end the user's sessions."`
}

type userAddCommand struct {
	Name    string `arg:"" help:"The name of the user."`
	Role    string `required:"" help:"viewer, operator, admin or account." placeholder:"ROLE"`
	Account string `help:"The account's name or id, for the role account." placeholder:"ACCOUNT"`
	Flags
}

// Run adds the user.
func (u userAddCommand) Run(env Environment) error {
	password, err := readPassword(env, "Password of "+u.Name)
	if err != nil {
		return err
	}
	fields := withoutEmpty(map[string]any{"name": u.Name, "role": u.Role, "password": password, "account": u.Account})
	return show(u.Flags, env, "the user", http.MethodPost, "/admin/users", fields, func(added userView) error {
		return printLine(env, "user %s added as %s", added.Name, added.Role)
	})
}

type userListCommand struct{ Flags }

// userView is a user in the answers of the admin API.
type userView struct {
	Name       string  `json:"name"`
	Role       string  `json:"role"`
	Account    *int64  `json:"account"`
	Provider   string  `json:"provider"`
	Disabled   bool    `json:"disabled"`
	SignedInAt *string `json:"signed_in_at"`
}

// Run prints a table.
func (u userListCommand) Run(env Environment) error {
	const noUsers = "there are no users; add one with: penstock user add NAME --role admin"
	head := []string{"NAME", "ROLE", "ACCOUNT", "PROVIDER", "STATE", "LAST SIGN-IN"}
	return show(u.Flags, env, "list users", http.MethodGet, "/admin/users", nil, func(users []userView) error {
		return printRecords(env, users, noUsers, head, func(user userView) []string {
			acct, state, signedIn := "-", "enabled", "never"
			if user.Account != nil {
				acct = fmt.Sprint(*user.Account)
			}
			if user.Disabled {
				state = "disabled"
			}
			if user.SignedInAt != nil {
				signedIn = *user.SignedInAt
			}
			return []string{user.Name, user.Role, acct, user.Provider, state, signedIn}
		})
	})
}

type userSetCommand struct {
	Name     string `arg:"" help:"The user's name."`
	Role     string `help:"viewer, operator, admin or account." placeholder:"ROLE"`
	Account  string `help:"The account's name or id, for the role account." placeholder:"ACCOUNT"`
	Password bool   `help:"Set a new password, read from standard input or entered at a prompt."`
	Disable  bool   `help:"Disable the user, who can then no longer sign in." xor:"state"`
	Enable   bool   `help:"Enable a disabled user." xor:"state"`
	Flags
}

// Run changes the user.
func (u userSetCommand) Run(env Environment) error {
	fields := withoutEmpty(map[string]any{"role": u.Role, "account": u.Account})
	if u.Disable || u.Enable {
		fields["disabled"] = u.Disable
	}
	if u.Password {
		password, err := readPassword(env, "New password of "+u.Name)
		if err != nil {
			return err
		}
		fields["password"] = password
	}
	if len(fields) == 0 {
		return errors.New("nothing to change: set --role, --account, --password, --disable or --enable")
	}
	return show(u.Flags, env, "the user", http.MethodPatch, "/admin/users/"+url.PathEscape(u.Name), fields, func(changed userView) error {
		return printLine(env, "user %s changed; its sessions have ended", changed.Name)
	})
}

type userRemoveCommand struct {
	Name string `arg:"" help:"The user's name."`
	Flags
}

// Run removes the user.
func (u userRemoveCommand) Run(env Environment) error {
	if _, err := u.Request(env, "user "+u.Name, http.MethodDelete, "/admin/users/"+url.PathEscape(u.Name), nil); err != nil {
		return err
	}
	if u.JSON {
		return json.NewEncoder(env.Stdout).Encode(map[string]string{"removed": u.Name})
	}
	return printLine(env, "user %s removed", u.Name)
}

// readPassword reads a password or secret twice from a terminal, without an echo, else once from the
// first line of standard input. The password is not an argument, because other users can see arguments.
func readPassword(env Environment, prompt string) (string, error) {
	if file, ok := env.Stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		password, err := readHidden(env, file, prompt+": ")
		if err != nil {
			return "", err
		}
		repeated, err := readHidden(env, file, "Again: ")
		if err == nil && password != repeated {
			err = errors.New("the two entries differ")
		}
		return password, err
	}
	line := ""
	if env.Stdin != nil {
		var err error
		line, err = bufio.NewReader(env.Stdin).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("standard input: %w", err)
		}
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", errors.New("nothing on standard input: write the password or secret to it")
	}
	return line, nil
}

func readHidden(env Environment, file *os.File, prompt string) (string, error) {
	_, _ = fmt.Fprint(env.Stderr, prompt)
	text, err := term.ReadPassword(int(file.Fd()))
	_, _ = fmt.Fprintln(env.Stderr)
	return string(text), err
}
