package vcard_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/penstock/penstock/decoders/vcard"
	"github.com/penstock/penstock/relay/relaytest"
)

// property is a property of a card, decoded by vobject.
type property struct {
	Name  string   `json:"name"`
	Types []string `json:"types"`
	Value any      `json:"value"` // a string, or an object for N
}

// oldCard returns a card for version 2.1. It has no comma, semicolon or backslash outside the
// name, because vobject decodes the escapes of version 3.0 in version 2.1 too.
func oldCard() vcard.Card {
	c := fullCard()
	c.FirstName, c.LastName, c.Note = `Jürgen; "Jo"`, "Öz", "a=b\n"+strings.Repeat("größer ", 20)+"🎉"
	return c
}

// TestVobjectReadsTheCards checks that vobject, an independent parser, decodes each version.
func TestVobjectReadsTheCards(t *testing.T) {
	for name, tc := range map[string]struct {
		card    vcard.Card
		version vcard.Version
	}{
		"all fields in 2.1": {fullCard(), vcard.V21}, "all fields in 3.0": {fullCard(), vcard.V30}, "all fields in 4.0": {fullCard(), vcard.V40},
		"special characters in 2.1": {oldCard(), vcard.V21}, "special characters in 3.0": {specialCard(), vcard.V30}, "special characters in 4.0": {specialCard(), vcard.V40},
	} {
		t.Run(name, func(t *testing.T) {
			card, err := tc.card.Encode(tc.version)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the card read by vobject", vobject(t, card), expected(tc.card, tc.version))
		})
	}
}

// expected returns the properties that vobject must decode from a card.
func expected(c vcard.Card, v vcard.Version) []property {
	list := []property{
		{Name: "VERSION", Value: string(v)},
		{Name: "N", Value: map[string]any{"family": c.LastName, "given": c.FirstName}},
		{Name: "FN", Value: c.FirstName + " " + c.LastName},
	}
	for _, phone := range [][2]string{{"CELL", c.Mobile}, {"HOME", c.Home}, {"WORK", c.Work}, {"FAX", c.Fax}} {
		number := phone[1]
		if number == "" {
			continue
		}
		if v == vcard.V40 && number[0] == '+' {
			number = "tel:" + strings.ReplaceAll(number, " ", "-")
		}
		list = append(list, property{Name: "TEL", Types: []string{phone[0]}, Value: number})
	}
	email := property{Name: "EMAIL", Types: []string{"INTERNET"}, Value: c.Email}
	date := strings.ReplaceAll(c.BirthDate, "-", "")
	if v == vcard.V40 {
		email.Types = nil
	} else {
		date = date[:4] + "-" + date[4:6] + "-" + date[6:]
	}
	note := strings.ReplaceAll(c.Note, "\r\n", "\n")
	return append(list, email, property{Name: "BDAY", Value: date}, property{Name: "NOTE", Value: note})
}

// vobject decodes a card with Debian's python3-vobject.
func vobject(t *testing.T, card []byte) (list []property) {
	t.Helper()
	if err := exec.Command("/usr/bin/python3", "-c", "import vobject").Run(); err != nil {
		const text = "vobject is not installed (Debian: apt-get install python3-vobject)"
		if os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
			t.Skip(text)
		}
		t.Fatal(text)
	}
	cmd := exec.Command("/usr/bin/python3", "testdata/read.py")
	cmd.Stdin = bytes.NewReader(card)
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("vobject: %v: %s", err, output)
	}
	if err := json.Unmarshal(output, &list); err != nil {
		t.Fatalf("vobject: %v: %s", err, output)
	}
	return list
}
