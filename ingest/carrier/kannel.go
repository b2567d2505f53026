package carrier

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders/decimal"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/inbound"
)

// parseKannel parses the parameters of Kannel's get-url, see the package comment, and of a
// form in the body. Kannel joins the parts of a message by default, and sends text,
// data and UDH as URL-encoded octets.
func parseKannel(alphabet *sms.Alphabet, e *intake.Entry) ([]inbound.Message, error) {
	o, err := kannelParameters(e)
	if err != nil {
		return nil, err
	}
	f := newFieldReader(alphabet, o)
	m := inbound.Message{
		CarrierID: f.optional("id", maxName), Reference: f.optional("smsc", maxName), Network: f.optional("network", maxName),
		UDH: []byte(f.optional("udh", maxUDH)),
	}
	f.setAddresses(&m, "from", "to")
	m.Stat = inbound.StatOf(m.UDH)
	setSentAt(&m, "time", f.optional("time", maxName), parseKannelTime)
	// Read the text in the coding of %c: 0 and -1 (unknown) are 7-bit, 1 is binary, 2 Unicode.
	// With mo-recode, Kannel reports Unicode that it has recoded to UTF-8 as 7-bit.
	if !f.has("text") {
		f.Add("text", "The text field is required.")
		return f.message(m)
	}
	text, charset := f.optional("text", maxText), strings.ToLower(f.optional("charset", maxName))
	switch f.optional("coding", maxName) {
	case "", "0", "-1":
		m.Text = decodeOctets(text, charset)
		m.Coding = codingOf(f.alphabet, m.Text)
	case "1":
		m.Coding, m.Data = sms.Binary, []byte(text)
	case "2":
		// The text is big-endian UTF-16, unless the charset says that Kannel has recoded it
		// (alt-charset, mo-recode) or a whole message has an odd number of octets and no NUL
		// at the end.
		m.Coding = sms.UCS2
		_, isPart := inbound.PartOf(&m)
		switch {
		case charset != "" && !strings.HasPrefix(charset, "utf-16") && !strings.HasPrefix(charset, "ucs-2"):
			m.Text = decodeOctets(text, charset)
		case len(text)%2 != 0 && !isPart && !strings.HasSuffix(text, "\x00"):
			m.Text = decodeOctets(text, "")
		default:
			m.Text = decodeUTF16(&m, []byte(text))
		}
	default:
		f.Add("coding", "The coding must be 0, 1 or 2.")
	}
	return f.message(m)
}

func kannelParameters(e *intake.Entry) (object, error) {
	raw := e.Query
	if isForm(e.ContentType) && len(e.Body) > 0 {
		raw = strings.Trim(raw+"&"+string(e.Body), "&")
	}
	return queryObject(raw)
}

// parseKannelTime parses %T, seconds since 1970, or %t, a date and time in UTC. It returns the zero
// time for other texts.
func parseKannelTime(s string) time.Time {
	if seconds, err := decimal.PlainInt(s); err == nil && seconds > 0 && seconds < 1<<38 {
		return time.Unix(seconds, 0).UTC()
	}
	t, err := time.Parse(time.DateTime, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// decodeOctets decodes a text as UTF-8, or as Latin-1 if that is the charset or the text is not
// valid UTF-8.
func decodeOctets(s, charset string) string {
	isLatin1 := charset == "iso-8859-1" || charset == "latin1"
	if !isLatin1 && utf8.ValidString(s) {
		return s
	}
	runes := make([]rune, 0, len(s))
	for _, c := range []byte(s) {
		runes = append(runes, rune(c))
	}
	return string(runes)
}
