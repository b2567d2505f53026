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

// User manages who may sign in to the console and the admin API.
type User struct {
	Add    userAddCommand    `cmd:"" help:"Add a user. The password is read from standard input, or entered at a prompt."`
	List   userListCommand   `cmd:"" help:"List the users."`
	Set    userSetCommand    `cmd:"" help:"Change a user, which ends its sessions."`
	Remove userRemoveCommand `cmd:"" help:"Remove a user, which ends its sessions."`
}

type userAddCommand struct {
	Name    string `arg:"" help:"The name to sign in with."`
	Role    string `required:"" help:"viewer, operator, admin or account." placeholder:"ROLE"`
	Account string `help:"The account's name or id, for the role account." placeholder:"ACCOUNT"`
	Flags
}

// Run adds the user.
func (u userAddCommand) Run(w Environment) error {
	password, err := readPassword(w, "Password of "+u.Name)
	if err != nil {
		return err
	}
	body := filled(map[string]any{"name": u.Name, "role": u.Role, "password": password, "account": u.Account})
	made, err := ask[shownUser](u.Flags, w, "the user", http.MethodPost, "/admin/users", body, http.StatusCreated)
	if err != nil {
		return err
	}
	if u.JSON {
		return nil
	}
	return printLine(w, "user %s added as %s", made.Name, made.Role)
}

type userListCommand struct{ Flags }

// shownUser is a user as the admin API lists it.
type shownUser struct {
	Name       string  `json:"name"`
	Role       string  `json:"role"`
	Account    *int64  `json:"account"`
	Provider   string  `json:"provider"`
	Disabled   bool    `json:"disabled"`
	SignedInAt *string `json:"signed_in_at"`
}

// Run prints a table.
func (u userListCommand) Run(w Environment) error {
	list, err := ask[[]shownUser](u.Flags, w, "list users", http.MethodGet, "/admin/users", nil)
	if err != nil {
		return err
	}
	if u.JSON {
		return nil
	}
	const none = "there are no users; add one with: penstock user add NAME --role admin"
	return printRecords(w, list, none, []string{"NAME", "ROLE", "ACCOUNT", "PROVIDER", "STATE", "LAST SIGN-IN"}, func(one shownUser) []string {
		acct, state, signedIn := "-", "enabled", "never"
		if one.Account != nil {
			acct = fmt.Sprint(*one.Account)
		}
		if one.Disabled {
			state = "disabled"
		}
		if one.SignedInAt != nil {
			signedIn = *one.SignedInAt
		}
		return []string{one.Name, one.Role, acct, one.Provider, state, signedIn}
	})
}

type userSetCommand struct {
	Name     string `arg:"" help:"The user's name."`
	Role     string `help:"viewer, operator, admin or account." placeholder:"ROLE"`
	Account  string `help:"The account's name or id, for the role account." placeholder:"ACCOUNT"`
	Password bool   `help:"Set a new password, read from standard input or entered at a prompt."`
	Disable  bool   `help:"Let the user sign in no more." xor:"state"`
	Enable   bool   `help:"Let a disabled user sign in again." xor:"state"`
	Flags
}

// Run changes the user.
func (u userSetCommand) Run(w Environment) error {
	body := filled(map[string]any{"role": u.Role, "account": u.Account})
	if u.Disable || u.Enable {
		body["disabled"] = u.Disable
	}
	if u.Password {
		password, err := readPassword(w, "New password of "+u.Name)
		if err != nil {
			return err
		}
		body["password"] = password
	}
	if len(body) == 0 {
		return errors.New("nothing to change: give --role, --account, --password, --disable or --enable")
	}
	newShownUser, err := ask[shownUser](u.Flags, w, "the user", http.MethodPatch, "/admin/users/"+url.PathEscape(u.Name), body)
	if err != nil {
		return err
	}
	if u.JSON {
		return nil
	}
	return printLine(w, "user %s changed; its sessions have ended", newShownUser.Name)
}

type userRemoveCommand struct {
	Name string `arg:"" help:"The user's name."`
	Flags
}

// Run removes the user.
func (u userRemoveCommand) Run(w Environment) error {
	if _, err := u.Ask(w, "user "+u.Name, http.MethodDelete, "/admin/users/"+url.PathEscape(u.Name), nil, http.StatusNoContent); err != nil {
		return err
	}
	if u.JSON {
		return json.NewEncoder(w.Stdout).Encode(map[string]string{"removed": u.Name})
	}
	return printLine(w, "user %s removed", u.Name)
}

// readPassword reads a password: twice from a terminal, without showing it, else the first
// line of standard input. It is not an argument, because arguments are visible to others.
func readPassword(w Environment, prompt string) (string, error) {
	if file, ok := w.Stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		head, err := askHidden(w, file, prompt+": ")
		if err != nil {
			return "", err
		}
		text, err := askHidden(w, file, "Again: ")
		if err == nil && head != text {
			err = errors.New("the two passwords differ")
		}
		return head, err
	}
	if w.Stdin == nil {
		return "", errors.New("nothing on standard input: write the password or secret to it")
	}
	line, err := bufio.NewReader(w.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("password: %w", err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", errors.New("nothing on standard input: write the password or secret to it")
	}
	return line, nil
}

func askHidden(w Environment, file *os.File, prompt string) (string, error) {
	_, _ = fmt.Fprint(w.Stderr, prompt)
	text, err := term.ReadPassword(int(file.Fd()))
	_, _ = fmt.Fprintln(w.Stderr)
	return string(text), err
}
