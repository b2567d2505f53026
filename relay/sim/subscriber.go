package sim

import (
	"net/mail"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/penstock/penstock/relay"
)

// Subscriber is an end customer.
type Subscriber struct {
	ID           string `json:"id"`
	Title        string `json:"title,omitempty"`
	Forename     string `json:"forename"`
	Surname      string `json:"surname,omitempty"`
	Address      string `json:"address,omitempty"`
	Address2     string `json:"address2,omitempty"`
	Address3     string `json:"address3,omitempty"`
	City         string `json:"city,omitempty"`
	PostCode     string `json:"post_code,omitempty"`
	CompanyName  string `json:"company_name,omitempty"`
	ContactNo    string `json:"contact_no,omitempty"`
	ContactEmail string `json:"contact_email,omitempty"`
}

// Field is one of a subscriber's parameters and its value.
type Field struct {
	Name  string
	Value *string
}

// Fields returns the parameters of a subscriber by their names in requests, all
// but the id.
func (s *Subscriber) Fields() []Field {
	return []Field{
		{"title", &s.Title}, {"forename", &s.Forename}, {"surname", &s.Surname}, {"address", &s.Address},
		{"address2", &s.Address2}, {"address3", &s.Address3}, {"city", &s.City}, {"post_code", &s.PostCode},
		{"company_name", &s.CompanyName}, {"contact_no", &s.ContactNo}, {"contact_email", &s.ContactEmail},
	}
}

// Required lists what a registration must have.
func Required() []string {
	return []string{"forename", "surname", "address", "post_code", "contact_no"}
}

// maxText is how many characters a name or a line of an address may have.
const maxText = 255

// Check normalises the fields and returns Invalid with their problems by name.
// required names those that must not be empty.
func (s *Subscriber) Check(required []string) error {
	p := relay.Problems{}
	for _, f := range s.Fields() {
		*f.Value = strings.TrimSpace(*f.Value)
		switch {
		case *f.Value == "" && slices.Contains(required, f.Name):
			p.AddNamed(f.Name, "The %s field is required.")
		case *f.Value != "" && f.Name == "contact_email" && !IsEmail(*f.Value):
			p.AddNamed(f.Name, "The %s must be a valid email address.")
		default:
			checkLine(p, f.Name, *f.Value)
		}
	}
	return p.Err()
}

// checkLine adds a problem unless value is a single line of at most maxText characters.
func checkLine(p relay.Problems, field, value string) {
	if utf8.RuneCountInString(value) > maxText || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		p.AddNamed(field, "The %s must be one line of at most 255 characters.")
	}
}

// IsEmail reports whether a text is an e-mail address, alone and without a name.
func IsEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || len(s) > 254 || strings.ContainsAny(s, "\"\\ ") {
		return false
	}
	_, host, _ := strings.Cut(s, "@")
	return strings.Contains(strings.Trim(host, "."), ".") && !strings.HasSuffix(host, ".")
}
