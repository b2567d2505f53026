package vcard_test

import (
	"encoding/hex"
	"io"
	"mime/quotedprintable"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders/decoderstest"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/decoders/vcard"
	"github.com/penstock/penstock/relay/relaytest"
)

func fullCard() vcard.Card {
	return vcard.Card{
		FirstName: "Ada", LastName: "Lovelace", Mobile: "+44 7700 900123", Home: "02079460123", Work: "+442079460999", Fax: "+1(212)555-0100",
		Email: "ada@example.com", BirthDate: "1815-12-10", Note: "First line\nsecond",
	}
}

func specialCard() vcard.Card {
	return vcard.Card{
		FirstName: `Jürgen; "Jo"`, LastName: `O\Neill, Jr.`, Email: "jo@exämple.de", BirthDate: "19800229",
		Note: "a=b; c, d\\n\r\n" + strings.Repeat("größer ", 20) + "🎉",
	}
}

// Each line of a quoted-printable value has whole characters, because some phones decode line
// by line.
func TestSoftBreaksDoNotSplitCharacters(t *testing.T) {
	for shift := range 12 {
		note := strings.Repeat("x", shift) + strings.Repeat("ö日🎉\n", 20)
		card, err := vcard.Card{FirstName: "A", LastName: "B", Note: note}.Encode(vcard.V21)
		relaytest.NoError(t, err)
		_, value, _ := strings.Cut(string(card), "NOTE;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:")
		value, _, _ = strings.Cut(value, "\r\nEND:VCARD")
		joined := ""
		for line := range strings.SplitSeq(value, "=\r\n") {
			raw, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(line)))
			if err != nil || !utf8.Valid(raw) || strings.HasSuffix(string(raw), "\r") || len(line) > 75 {
				t.Errorf("shifted by %d: the line %q is decoded to %q, %v", shift, line, raw, err)
			}
			joined += string(raw)
		}
		if joined != strings.ReplaceAll(note, "\n", "\r\n") {
			t.Errorf("shifted by %d: the joined lines are %q, want the note", shift, joined)
		}
	}
}

func TestEncode(t *testing.T) {
	for name, tc := range map[string]struct {
		card    vcard.Card
		version vcard.Version
		want    []string
	}{
		"all fields in 2.1": {fullCard(), vcard.V21, []string{
			"BEGIN:VCARD", "VERSION:2.1", "N:Lovelace;Ada;;;", "FN:Ada Lovelace", "TEL;CELL:+44 7700 900123", "TEL;HOME:02079460123",
			"TEL;WORK:+442079460999", "TEL;FAX:+1(212)555-0100", "EMAIL;INTERNET:ada@example.com", "BDAY:1815-12-10",
			"NOTE;ENCODING=QUOTED-PRINTABLE:First line=0D=0Asecond", "END:VCARD",
		}},
		"all fields in 3.0": {fullCard(), vcard.V30, []string{
			"BEGIN:VCARD", "VERSION:3.0", "N:Lovelace;Ada;;;", "FN:Ada Lovelace", "TEL;TYPE=CELL:+44 7700 900123", "TEL;TYPE=HOME:02079460123",
			"TEL;TYPE=WORK:+442079460999", "TEL;TYPE=FAX:+1(212)555-0100", "EMAIL;TYPE=INTERNET:ada@example.com", "BDAY:1815-12-10",
			`NOTE:First line\nsecond`, "END:VCARD",
		}},
		"all fields in 4.0": {fullCard(), vcard.V40, []string{
			"BEGIN:VCARD", "VERSION:4.0", "N:Lovelace;Ada;;;", "FN:Ada Lovelace", "TEL;VALUE=uri;TYPE=cell:tel:+44-7700-900123",
			"TEL;TYPE=home:02079460123", "TEL;VALUE=uri;TYPE=work:tel:+442079460999", "TEL;VALUE=uri;TYPE=fax:tel:+1(212)555-0100",
			"EMAIL:ada@example.com", "BDAY:18151210", `NOTE:First line\nsecond`, "END:VCARD",
		}},
		"special characters in 2.1": {specialCard(), vcard.V21, []string{
			"BEGIN:VCARD", "VERSION:2.1", `N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:O\\Neill, Jr.;J=C3=BCrgen\; "Jo"=`, `;;;`,
			`FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:J=C3=BCrgen; "Jo" O\Neill, Jr.`,
			"EMAIL;INTERNET;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:jo@ex=C3=A4mple.de", "BDAY:1980-02-29",
			`NOTE;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:a=3Db; c, d\n=0D=0Agr=C3=B6=`,
		}},
		"special characters in 3.0": {specialCard(), vcard.V30, []string{
			"BEGIN:VCARD", "VERSION:3.0", `N:O\\Neill\, Jr.;Jürgen\; "Jo";;;`, `FN:Jürgen\; "Jo" O\\Neill\, Jr.`,
			"EMAIL;TYPE=INTERNET:jo@exämple.de", "BDAY:1980-02-29",
			`NOTE:a=b\; c\, d\\n\ngrößer größer größer größer größer größer `, " größer größer",
		}},
		"an equals sign at the end of a line of 2.1": {vcard.Card{FirstName: "A", LastName: "B", Note: "1+1="}, vcard.V21, []string{
			"BEGIN:VCARD", "VERSION:2.1", "N:B;A;;;", "FN:A B", "NOTE;ENCODING=QUOTED-PRINTABLE:1+1=3D", "END:VCARD",
		}},
		"a blank after a soft line break is escaped": {vcard.Card{FirstName: "A", LastName: "B", Note: strings.Repeat("1", 43) + " 2\n"}, vcard.V21, []string{
			"BEGIN:VCARD", "VERSION:2.1", "N:B;A;;;", "FN:A B", "NOTE;ENCODING=QUOTED-PRINTABLE:" + strings.Repeat("1", 43) + "=", "=202=0D=0A", "END:VCARD",
		}},
		"a line of 75 octets before folded lines": {vcard.Card{FirstName: "A", LastName: "B", Note: strings.Repeat("1", 70+74+1)}, vcard.V30, []string{
			"BEGIN:VCARD", "VERSION:3.0", "N:B;A;;;", "FN:A B", "NOTE:" + strings.Repeat("1", 70), " " + strings.Repeat("1", 74), " 1", "END:VCARD",
		}},
		"a line is folded before a character": {vcard.Card{FirstName: "A", LastName: "B", Note: strings.Repeat("1", 68) + "🎉"}, vcard.V40, []string{
			"BEGIN:VCARD", "VERSION:4.0", "N:B;A;;;", "FN:A B", "NOTE:" + strings.Repeat("1", 68), " 🎉", "END:VCARD",
		}},
		"names only": {vcard.Card{FirstName: "A", LastName: "B"}, vcard.V30, []string{"BEGIN:VCARD", "VERSION:3.0", "N:B;A;;;", "FN:A B", "END:VCARD"}},
		"a number with an extension is text": {vcard.Card{FirstName: "A", LastName: "B", Work: "+44 20 7946 0123 ext 5"}, vcard.V40, []string{
			"BEGIN:VCARD", "VERSION:4.0", "N:B;A;;;", "FN:A B", "TEL;TYPE=work:+44 20 7946 0123 ext 5", "END:VCARD",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.card.Encode(tc.version)
			relaytest.NoError(t, err)
			if want := strings.Join(tc.want, "\r\n"); !strings.HasPrefix(string(got), want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			checkLines(t, string(got))
		})
	}
}

// checkLines checks that a card ends with END:VCARD and has lines of 1 to 75 octets of UTF-8.
func checkLines(t *testing.T, card string) {
	t.Helper()
	if !strings.HasSuffix(card, "\r\nEND:VCARD\r\n") {
		t.Fatalf("the card does not end with END:VCARD: %q", card)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(card, "\r\n"), "\r\n") {
		if len(line) > 75 || line == "" || strings.ContainsAny(line, "\r\n") || !utf8.ValidString(line) {
			t.Fatalf("invalid line %q", line)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*vcard.Card)
		field  string
		offset int
	}{
		"no first name":              {func(c *vcard.Card) { c.FirstName = " " }, "first_name", 0},
		"no last name":               {func(c *vcard.Card) { c.LastName = "" }, "last_name", 0},
		"a name of two lines":        {func(c *vcard.Card) { c.LastName = "a\nb" }, "last_name", 1},
		"a number with a line break": {func(c *vcard.Card) { c.Mobile = "1\r\nNOTE:x" }, "phone.mobile", 1},
		"an address with a tab":      {func(c *vcard.Card) { c.Email = "a\t" }, "email", 1},
		"a note that is not UTF-8":   {func(c *vcard.Card) { c.Note = "ab\xff" }, "note", 2},
		"a note with a NUL":          {func(c *vcard.Card) { c.Note = "ab\x00" }, "note", 2},
		"an invalid date":            {func(c *vcard.Card) { c.BirthDate = "1981-02-29" }, "birth_date", 0},
		"a date in another order":    {func(c *vcard.Card) { c.BirthDate = "29/02/1980" }, "birth_date", 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := fullCard()
			tc.change(&c)
			_, err := c.Message(vcard.V30)
			decoderstest.Refused(t, err, "vcard", tc.field, tc.offset)
		})
	}
}

func TestParseVersion(t *testing.T) {
	for s, want := range map[string]vcard.Version{"": vcard.V30, "2.1": vcard.V21, "3.0": vcard.V30, "4.0": vcard.V40, "3": "", "v4.0": "", " 3.0": ""} {
		if got, err := vcard.ParseVersion(s); got != want || (err == nil) != (want != "") {
			t.Errorf("ParseVersion(%q) = %q, %v, want %q", s, got, err, want)
		}
	}
}

func TestMessageHasTheVCardPort(t *testing.T) {
	o, err := fullCard().Message(vcard.V30)
	relaytest.NoError(t, err)
	m, err := o.Split(0x11)
	relaytest.NoError(t, err)
	if len(m.Parts) != 3 {
		t.Fatalf("%d parts, want 3", len(m.Parts))
	}
	relaytest.Equal(t, "the coding", m.Coding, sms.Binary)
	relaytest.Equal(t, "the header", hex.EncodeToString(m.Parts[0].UDH), "0b050423f400000003110301")
}

// FuzzEncode checks that the values of a card can be decoded in each version.
func FuzzEncode(f *testing.F) {
	for _, c := range []vcard.Card{fullCard(), specialCard(), {FirstName: "a", LastName: `b\`}} {
		f.Add(c.FirstName, c.LastName, c.Mobile, c.Email, c.BirthDate, c.Note)
	}
	f.Add("=3D", "a;b", "+1 ", " ", "20000101", "\n=\r\n")
	f.Fuzz(func(t *testing.T, firstName, lastName, mobile, email, date, note string) {
		card := vcard.Card{FirstName: firstName, LastName: lastName, Mobile: mobile, Email: email, BirthDate: date, Note: note}
		for _, v := range []vcard.Version{vcard.V21, vcard.V30, vcard.V40} {
			got, err := card.Encode(v)
			if err != nil {
				return
			}
			checkLines(t, string(got))
			decoded := properties(t, string(got))
			note := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(note)
			relaytest.Equal(t, string(v)+": FN, EMAIL and NOTE", [3]string{decoded["FN"], decoded["EMAIL"], decoded["NOTE"]}, [3]string{firstName + " " + lastName, email, note})
			relaytest.Equal(t, string(v)+": last and first name", components(decoded["N"]), []string{lastName, firstName, "", "", ""})
			if tel := decoded["TEL"]; tel != mobile && tel != "tel:"+strings.ReplaceAll(mobile, " ", "-") {
				t.Fatalf("%s: the number %q is decoded to %q", v, mobile, tel)
			}
		}
	})
}

// properties returns the decoded properties of a card by name. N is returned with its escapes.
func properties(t *testing.T, card string) map[string]string {
	t.Helper()
	list := make(map[string]string)
	card = strings.ReplaceAll(card, "\r\n ", "")
	if strings.Contains(card, "VERSION:2.1") {
		card = strings.ReplaceAll(card, "=\r\n", "")
	}
	for line := range strings.SplitSeq(card, "\r\n") {
		head, value, _ := strings.Cut(line, ":")
		name, _, _ := strings.Cut(head, ";")
		switch {
		case strings.Contains(head, "QUOTED-PRINTABLE"):
			raw, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(value)))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			value = strings.ReplaceAll(string(raw), "\r\n", "\n")
		case name != "N" && !strings.Contains(card, "VERSION:2.1") && !strings.Contains(head, "VALUE=uri"):
			value = unescape(value)
		}
		list[name] = value
	}
	return list
}

func unescape(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\,`, ",", `\;`, ";", `\n`, "\n").Replace(s)
}

// components splits a name at unescaped semicolons and removes its escapes.
func components(value string) []string {
	list := []string{""}
	for i := 0; i < len(value); i++ {
		switch {
		case value[i] == '\\' && i+1 < len(value):
			i++
			list[len(list)-1] += value[i : i+1]
		case value[i] == ';':
			list = append(list, "")
		default:
			list[len(list)-1] += value[i : i+1]
		}
	}
	return list
}
