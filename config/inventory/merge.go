package inventory

import (
	"cmp"
	"reflect"
)

// Merge returns the declared records after documents were applied in this order. A record of a
// later document replaces the record with the same key, and an account keeps settings that
// the later document omits. The key of an account is its id or name, of a token its hash, of
// a SIM its ICCID, of a network its prefix, of a trunk its addresses, and of other records
// their id. The sensors of decoders are joined by key. Secrets that a later record omits stay.
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

// Omitted returns the records of the old document that the fresh one omits, which a prune
// removes. An account that the fresh document has is returned with its id, its name and its
// omitted records.
func Omitted(old, fresh Document) Document {
	removed := clone(old)
	removed.Name = ""
	for _, list := range recordsOfDocument() {
		list.subtract(&removed, &fresh)
	}
	accounts, declared := removed.Accounts, IndexOf(fresh.Accounts)
	removed.Accounts = nil
	for _, a := range accounts {
		if i := declared.Find(a); i >= 0 {
			if a = omittedOf(a, fresh.Accounts[i]); !a.hasRecords() {
				continue
			}
		}
		removed.Accounts = append(removed.Accounts, a)
	}
	return removed
}

// Without returns the old document without the records of removed. Its accounts stay with their
// settings.
func Without(old, removed Document) Document {
	old = clone(old)
	for _, list := range recordsOfDocument() {
		list.subtract(&old, &removed)
	}
	removedAccounts := IndexOf(removed.Accounts)
	for i, a := range old.Accounts {
		if j := removedAccounts.Find(a); j >= 0 {
			old.Accounts[i] = mergeAccount(a.settings(), omittedOf(a, removed.Accounts[j]))
		}
	}
	return old
}

// settings returns the account without its records.
func (a Account) settings() Account {
	return Account{ID: a.ID, Name: a.Name, Credit: a.Credit, Permissions: a.Permissions, WebhookSecrets: a.WebhookSecrets, CallbackURL: a.CallbackURL}
}

// bare returns the account without its settings.
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

// omittedOf returns the account with its records that fresh omits, without its settings.
func omittedOf(old, fresh Account) Account {
	old = old.bare()
	for _, list := range recordsOfAccount() {
		list.subtract(&old, &fresh)
	}
	return old
}

func (a Account) hasRecords() bool {
	a = a.bare()
	a.ID, a.Name = 0, ""
	return !reflect.ValueOf(a).IsZero()
}

// merge keeps the order of the old records and appends new ones.
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

// omitted returns the old records that fresh does not have.
func omitted[T any](old, fresh []T, key func(T) string) (records []T) {
	declared := make(map[string]bool, len(fresh))
	for _, f := range fresh {
		declared[key(f)] = true
	}
	for _, o := range old {
		if !declared[key(o)] {
			records = append(records, o)
		}
	}
	return records
}

// Index finds accounts of a list by id and name.
type Index struct {
	byID   map[int64]int
	byName map[string]int
	ids    map[string]int64 // by name
}

// IndexOf returns the index of a list. Of several accounts with a name it finds the first.
func IndexOf(list []Account) Index {
	index := Index{make(map[int64]int, len(list)), make(map[string]int, len(list)), make(map[string]int64, len(list))}
	for i, a := range list {
		index.add(i, a)
	}
	return index
}

func (i Index) add(position int, a Account) {
	if _, taken := i.byID[a.ID]; a.ID != 0 && !taken {
		i.byID[a.ID] = position
	}
	if first, taken := i.byName[a.Name]; !taken || first == position {
		i.byName[a.Name], i.ids[a.Name] = position, a.ID
	}
}

// Find returns the position of the account with the same id or, if there is none, of the account
// with the same name, unless both accounts have an id. It returns -1 if the list has neither.
func (i Index) Find(a Account) int {
	if position, ok := i.byID[a.ID]; ok {
		return position
	}
	if position, ok := i.byName[a.Name]; ok && (a.ID == 0 || i.ids[a.Name] == 0) {
		return position
	}
	return -1
}
