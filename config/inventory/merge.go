package inventory

import (
	"cmp"
	"reflect"
)

// Merge returns what is declared once each document has been applied over those
// before it. A record that the later document names stands as it says, an
// account's own fields only where it gives them; what it omits stays. Records
// are the same by their key: accounts by id or name, tokens by hash, SIMs by
// ICCID, networks by prefix, trunks by their addresses, all else by id.
// A decoder's sensors are joined by key, and secrets that a record omits stay.
func Merge(parts ...Document) (document Document) {
	for i, part := range parts {
		part = clone(part)
		if i == 0 {
			document = part
			continue
		}
		document.Name = cmp.Or(part.Name, document.Name)
		for _, list := range recordsOfDocument() {
			list.merge(&document, &part)
		}
		index := IndexOf(document.Accounts)
		for _, a := range part.Accounts {
			i := index.Find(a)
			if i < 0 {
				i, document.Accounts = len(document.Accounts), append(document.Accounts, a)
			} else {
				document.Accounts[i] = mergeAccount(document.Accounts[i], a)
			}
			index.add(i, document.Accounts[i])
		}
	}
	return document
}

// Omitted returns the records of the old document that the new one does not
// name: what a prune would remove. An account that only lost records is there
// with its id and name and those records.
func Omitted(old, fresh Document) Document {
	gone := clone(old)
	gone.Name = ""
	for _, list := range recordsOfDocument() {
		list.omitted(&gone, &fresh)
	}
	accounts, named := gone.Accounts, IndexOf(fresh.Accounts)
	gone.Accounts = nil
	for _, a := range accounts {
		if i := named.Find(a); i >= 0 {
			if a = omittedOf(a, fresh.Accounts[i]); !a.holdsRecords() {
				continue
			}
		}
		gone.Accounts = append(gone.Accounts, a)
	}
	return gone
}

// Without returns the old document without the records that gone names. Its
// accounts stay, with their own settings.
func Without(old, gone Document) Document {
	old = clone(old)
	for _, list := range recordsOfDocument() {
		list.omitted(&old, &gone)
	}
	named := IndexOf(gone.Accounts)
	for i, a := range old.Accounts {
		if j := named.Find(a); j >= 0 {
			old.Accounts[i] = mergeAccount(a.settings(), omittedOf(a, gone.Accounts[j]))
		}
	}
	return old
}

// settings is the account without its records.
func (a Account) settings() Account {
	return Account{ID: a.ID, Name: a.Name, Credit: a.Credit, Permissions: a.Permissions, WebhookSecrets: a.WebhookSecrets, CallbackURL: a.CallbackURL}
}

// bare is the account without its settings.
func (a Account) bare() Account {
	a.Credit, a.Permissions, a.WebhookSecrets, a.CallbackURL = nil, nil, nil, ""
	return a
}

func mergeAccount(old, fresh Account) Account {
	old.ID, old.Name = cmp.Or(fresh.ID, old.ID), cmp.Or(fresh.Name, old.Name)
	old.Credit, old.CallbackURL = cmp.Or(fresh.Credit, old.Credit), cmp.Or(fresh.CallbackURL, old.CallbackURL)
	if len(fresh.Permissions) > 0 {
		old.Permissions = fresh.Permissions
	}
	if len(fresh.WebhookSecrets) > 0 {
		old.WebhookSecrets = fresh.WebhookSecrets
	}
	for _, list := range recordsOfAccount() {
		list.merge(&old, &fresh)
	}
	return old
}

// omittedOf is the account with those of its records that fresh does not name.
func omittedOf(old, fresh Account) Account {
	old = old.bare()
	for _, list := range recordsOfAccount() {
		list.omitted(&old, &fresh)
	}
	return old
}

// holdsRecords reports whether the account has records in addition to its settings.
func (a Account) holdsRecords() bool {
	a = a.bare()
	a.ID, a.Name = 0, ""
	return !reflect.ValueOf(a).IsZero()
}

// merge keeps the old order and appends what is new.
func merge[T any](old, fresh []T, key func(T) string, join func(old, fresh T) T) []T {
	index := make(map[string]int, len(old)+len(fresh))
	for i, o := range old {
		index[key(o)] = i
	}
	for _, f := range fresh {
		if i, ok := index[key(f)]; ok {
			old[i] = join(old[i], f)
			continue
		}
		index[key(f)] = len(old)
		old = append(old, f)
	}
	return old
}

func omitted[T any](old, fresh []T, key func(T) string) (gone []T) {
	named := make(map[string]bool, len(fresh))
	for _, f := range fresh {
		named[key(f)] = true
	}
	for _, o := range old {
		if !named[key(o)] {
			gone = append(gone, o)
		}
	}
	return gone
}

// Index finds accounts in a list of them.
type Index struct {
	byID   map[int64]int
	byName map[string]int
	ids    map[string]int64 // by name
}

// IndexOf makes the index of a list. Of accounts with one name the first is found by it.
func IndexOf(list []Account) Index {
	x := Index{make(map[int64]int, len(list)), make(map[string]int, len(list)), make(map[string]int64, len(list))}
	for i, a := range list {
		x.add(i, a)
	}
	return x
}

func (x Index) add(i int, a Account) {
	if _, taken := x.byID[a.ID]; a.ID != 0 && !taken {
		x.byID[a.ID] = i
	}
	if start, taken := x.byName[a.Name]; !taken || start == i {
		x.byName[a.Name], x.ids[a.Name] = i, a.ID
	}
}

// Find returns the place of an account, found by its id, else by its name unless both
// have an id; -1 if it is not in the list.
func (x Index) Find(a Account) int {
	if i, ok := x.byID[a.ID]; ok {
		return i
	}
	if i, ok := x.byName[a.Name]; ok && (a.ID == 0 || x.ids[a.Name] == 0) {
		return i
	}
	return -1
}
