package sim

import (
	"context"
	"net/mail"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
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

// Fields returns the parameters of a subscriber, except the id, with their names in requests.
func (s *Subscriber) Fields() []Field {
	return []Field{
		{"title", &s.Title}, {"forename", &s.Forename}, {"surname", &s.Surname}, {"address", &s.Address},
		{"address2", &s.Address2}, {"address3", &s.Address3}, {"city", &s.City}, {"post_code", &s.PostCode},
		{"company_name", &s.CompanyName}, {"contact_no", &s.ContactNo}, {"contact_email", &s.ContactEmail},
	}
}

// RequiredFields returns the fields that a registration must have.
func RequiredFields() []string {
	return []string{"forename", "surname", "address", "post_code", "contact_no"}
}

// maxText is the largest number of characters of a name or a line of an address.
const maxText = 255

// Check trims the fields and returns an Invalid error with their problems. required names the
// fields that must not be empty.
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

// IsEmail reports whether a text is an e-mail address, without a display name.
func IsEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || len(s) > 254 || strings.ContainsAny(s, "\"\\ ") {
		return false
	}
	_, host, _ := strings.Cut(s, "@")
	return strings.Contains(strings.Trim(host, "."), ".") && !strings.HasSuffix(host, ".")
}

// Subscribers stores subscribers.
type Subscribers struct{ db *db.DB }

// NewSubscribers returns the store of subscribers.
func NewSubscribers(database *db.DB) *Subscribers { return &Subscribers{db: database} }

// subscriberTable is the name of the table of subscribers, and of their list in sim_count.
const subscriberTable = "sim_subscriber"

// Get loads a subscriber.
func (s *Subscribers) Get(ctx context.Context, acct relay.AccountID, id string) (Subscriber, error) {
	return db.One(ctx, s.db, "subscriber "+id, "SELECT doc FROM sim_subscriber WHERE account = $1 AND id = $2",
		db.Doc[Subscriber], acct, id)
}

// foldName returns a name in lower case with control characters replaced by spaces.
func foldName(name string) string {
	return strings.Map(func(r rune) rune { return max(r, ' ') }, strings.ToLower(name))
}

// Put saves a subscriber. It replaces a stored subscriber, because a job may be repeated.
func (s *Subscribers) Put(ctx context.Context, acct relay.AccountID, subscriber Subscriber) error {
	const insert = `
		INSERT INTO sim_subscriber (account, id, forename, surname, doc)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (account, id) DO NOTHING`
	const replace = `
		UPDATE sim_subscriber
		SET forename = $3,
		    surname = $4,
		    doc = $5
		WHERE account = $1
		  AND id = $2`
	label := "subscriber " + subscriber.ID
	values := []any{acct, subscriber.ID, foldName(subscriber.Forename), foldName(subscriber.Surname), db.JSON(subscriber)}
	return s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		inserted, err := tx.Exec(ctx, label, insert, values...)
		if err != nil {
			return err
		}
		if inserted == 0 {
			return tx.Run(ctx, label, replace, values...)
		}
		return addToCount(ctx, tx, acct, subscriberTable, 1)
	})
}

// List returns a page of an account's subscribers.
func (s *Subscribers) List(ctx context.Context, acct relay.AccountID, q Query) ([]Subscriber, int, error) {
	q.Filters = slices.Clone(q.Filters)
	for i := range q.Filters {
		q.Filters[i].Value = foldName(q.Filters[i].Value)
	}
	l := list{table: subscriberTable, account: acct, columns: SubscriberColumns()}
	return readPage(ctx, s.db, l, q, "doc", db.Doc[Subscriber])
}
