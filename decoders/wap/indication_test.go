package wap_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/penstock/penstock/decoders/decoderstest"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/decoders/wap"
	"github.com/penstock/penstock/relay/relaytest"
)

// indications returns service indications with their WBXML. The WBXML is in hexadecimal with
// text between apostrophes.
func indications() map[string]struct {
	indication wap.Indication
	want       string
} {
	return map[string]struct {
		indication wap.Indication
		want       string
	}{
		"a host with an ending that has a token":       {wap.Indication{Title: "Hello", URL: "http://example.com/x"}, "0c 03'example'00 85 03'x'00 01 03'Hello'00"},
		"a host that begins with www":                  {wap.Indication{Title: "Hi", URL: "http://www.example.org/"}, "0d 03'example'00 88 01 03'Hi'00"},
		"https":                                        {wap.Indication{Title: "Hi", URL: "https://example.net/a?b=c&d=e"}, "0e 03'example'00 87 03'a?b=c&d=e'00 01 03'Hi'00"},
		"https and www":                                {wap.Indication{Title: "Hi", URL: "https://www.example.edu/"}, "0f 03'example'00 86 01 03'Hi'00"},
		"a host without a token, text in UTF-8":        {wap.Indication{Title: "Grüße 🎉", URL: "https://example.de"}, "0e 03'example.de'00 01 03'Grüße 🎉'00"},
		"a URL with another scheme":                    {wap.Indication{Title: "Call", URL: "wtai://wp/mc;447700900123"}, "0b 03'wtai://wp/mc;447700900123'00 01 03'Call'00"},
		"no title":                                     {wap.Indication{URL: "http://a.b"}, "0c 03'a.b'00 01"},
		"two endings that have a token":                {wap.Indication{Title: "Hi", URL: "http://a.com/b.com/"}, "0c 03'a'00 85 03'b.com/'00 01 03'Hi'00"},
		"a URL that is only a token":                   {wap.Indication{Title: "Hi", URL: "https://www."}, "0f 01 03'Hi'00"},
		"characters that XML escapes and a line break": {wap.Indication{Title: "<b> & \"c\"\nd", URL: "http://a.b"}, "0c 03'a.b'00 01 03'<b> & \"c\"\nd'00"},
	}
}

func TestIndication(t *testing.T) {
	for name, tc := range indications() {
		t.Run(name, func(t *testing.T) {
			got, err := tc.indication.Message(0xDC)
			relaytest.NoError(t, err)
			equalPush(t, got, octets(t, "dc 06 01 ae 02 05 6a 00 45 c6 "+tc.want+" 01 01"))
		})
	}
}

// equalPush checks the data, the coding and the header of a push.
func equalPush(t *testing.T, got sms.Octets, data []byte) {
	t.Helper()
	relaytest.Equal(t, "the data", hex.EncodeToString(got.Data), hex.EncodeToString(data))
	relaytest.Equal(t, "the coding", got.Coding, sms.Binary)
	relaytest.Equal(t, "the header", hex.EncodeToString(got.Header.Append(nil)), "0605040b8423f0")
}

// octets parses hexadecimal with text between apostrophes.
func octets(t testing.TB, s string) []byte {
	t.Helper()
	var data []byte
	for i, part := range strings.Split(s, "'") {
		if i%2 == 1 {
			data = append(data, part...)
			continue
		}
		raw, err := hex.DecodeString(strings.ReplaceAll(part, " ", ""))
		relaytest.NoError(t, err)
		data = append(data, raw...)
	}
	return data
}

func TestIndicationRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		indication wap.Indication
		field      string
		offset     int
	}{
		"no address":                         {wap.Indication{Title: "Hi"}, "url", 0},
		"an address with a blank":            {wap.Indication{URL: "http://a b"}, "url", 8},
		"an address that is not ASCII":       {wap.Indication{URL: "http://ä.de"}, "url", 7},
		"an address with a NUL":              {wap.Indication{URL: "http://a\x00b"}, "url", 8},
		"a title with a NUL":                 {wap.Indication{Title: "a\x00b", URL: "http://a"}, "title", 1},
		"a title that is not UTF-8":          {wap.Indication{Title: "ab\xff", URL: "http://a"}, "title", 2},
		"a character that is invalid in XML": {wap.Indication{Title: "ab\x1b", URL: "http://a"}, "title", 2},
		"a noncharacter":                     {wap.Indication{Title: "a\uFFFE", URL: "http://a"}, "title", 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.indication.Message(1)
			decoderstest.Refused(t, err, "si", tc.field, tc.offset)
		})
	}
}

func FuzzIndication(f *testing.F) {
	for _, tc := range indications() {
		f.Add(tc.indication.Title, tc.indication.URL, byte(1))
	}
	f.Add("a\x00", "http://\x01", byte(0))
	f.Fuzz(func(t *testing.T, title, url string, transaction byte) {
		o, err := wap.Indication{Title: title, URL: url}.Message(transaction)
		if err != nil {
			return
		}
		body, found := bytes.CutPrefix(o.Data, []byte{transaction, 0x06, 0x01, 0xAE, 0x02, 0x05, 0x6A, 0x00, 0x45, 0xC6})
		if !found {
			t.Fatalf("the push has unexpected headers: %x", o.Data)
		}
		href, content := readWBXML(t, body)
		if href != url || content != title {
			t.Fatalf("the URL %q and the title %q are decoded to %q and %q", url, title, href, content)
		}
		if _, err := o.Split(transaction); err != nil && len(o.Data) <= 255*128 {
			t.Fatal(err)
		}
	})
}

// readWBXML returns the attribute href and the content of an indication.
func readWBXML(t *testing.T, body []byte) (href, content string) {
	t.Helper()
	tokens := map[byte]string{
		0x0B: "", 0x0C: "http://", 0x0D: "http://www.", 0x0E: "https://", 0x0F: "https://www.",
		0x85: ".com/", 0x86: ".edu/", 0x87: ".net/", 0x88: ".org/",
	}
	var sections [3]string
	ends := 0
	for i := 0; i < len(body); i++ {
		switch c := body[i]; c {
		case 0x01:
			if ends++; ends > 3 {
				t.Fatalf("too many END tokens in %x", body)
			}
		case 0x03:
			length := bytes.IndexByte(body[i:], 0)
			sections[ends] += string(body[i+1 : i+length])
			i += length
		default:
			text, ok := tokens[c]
			if !ok || ends > 0 {
				t.Fatalf("token %#x in %x", c, body)
			}
			sections[ends] += text
		}
	}
	if ends != 3 || sections[2] != "" {
		t.Fatalf("%d END tokens in %x, want 3", ends, body)
	}
	return sections[0], sections[1]
}
