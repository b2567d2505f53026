package redisstore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// Accounts keeps accounts, tokens and the inventory; it is an account.Store.
type Accounts struct{ db *DB }

// Accounts returns the store of accounts.
func (d *DB) Accounts() *Accounts { return &Accounts{db: d} }

// Token loads a token by its hash.
func (s *Accounts) Token(ctx context.Context, hash string) (account.Token, error) {
	return field[account.Token](ctx, s.db, "token", keyTokens(), hash)
}

// TokenBySource loads the token that a source names.
func (s *Accounts) TokenBySource(ctx context.Context, source string) (account.Token, error) {
	hash, err := s.db.rdb.HGet(ctx, keySources(), source).Result()
	if err != nil {
		return account.Token{}, wrap("source", err)
	}
	t, err := s.Token(ctx, hash)
	if err == nil && t.Source != source {
		return account.Token{}, relay.Errorf(relay.KindNotFound, "source: the token no longer has it")
	}
	return t, err
}

// PutTokens saves tokens and tells every gateway to forget what it remembers.
func (s *Accounts) PutTokens(ctx context.Context, tokens []account.Token) error {
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, t := range tokens {
			p.HSet(ctx, keyTokens(), t.Hash, encode(t))
			if t.Source != "" {
				p.HSet(ctx, keySources(), t.Source, t.Hash)
			}
		}
		return p.Publish(ctx, keyTokensChanged(), "put").Err()
	})
	return wrap("tokens", err)
}

// DeleteToken revokes a token at once, everywhere.
func (s *Accounts) DeleteToken(ctx context.Context, t account.Token) error {
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HDel(ctx, keyTokens(), t.Hash)
		if t.Source != "" {
			p.HDel(ctx, keySources(), t.Source)
		}
		return p.Publish(ctx, keyTokensChanged(), "delete").Err()
	})
	return wrap("token", err)
}

// Changes calls back whenever a token changed anywhere, until ctx is done. A
// connection that was lost counts as a change as soon as the server can be asked
// again: something may have been missed, and until then what is remembered is
// all there is.
func (s *Accounts) Changes(ctx context.Context, changed func()) {
	sub := s.db.rdb.Subscribe(ctx, keyTokensChanged())
	defer func() { _ = sub.Close() }()
	messages := sub.ChannelWithSubscriptions()
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-messages:
			if !ok {
				return
			}
			if _, renewed := m.(*redis.Subscription); renewed && !s.answers(ctx) {
				return
			}
			changed()
		}
	}
}

// answers waits until tokens can be read: a server that is loading takes
// subscriptions before that. It reports false when ctx is done.
func (s *Accounts) answers(ctx context.Context) bool {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for s.db.rdb.HLen(ctx, keyTokens()).Err() != nil {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// Login loads the login of a username.
func (s *Accounts) Login(ctx context.Context, username string) (account.Login, error) {
	return field[account.Login](ctx, s.db, "login", keyLogins(), username)
}

// PutLogin saves a login.
func (s *Accounts) PutLogin(ctx context.Context, l account.Login) error {
	return wrap("login", s.db.rdb.HSet(ctx, keyLogins(), l.Username, encode(l)).Err())
}

// DeleteLogin forgets a username; one that is not there is fine.
func (s *Accounts) DeleteLogin(ctx context.Context, username string) error {
	return wrap("login", s.db.rdb.HDel(ctx, keyLogins(), username).Err())
}

// Account loads an account.
func (s *Accounts) Account(ctx context.Context, id account.ID) (account.Account, error) {
	return field[account.Account](ctx, s.db, "account", keyAccounts(), id.String())
}

// AccountByName loads an account by its name.
func (s *Accounts) AccountByName(ctx context.Context, name string) (account.Account, error) {
	text, err := s.db.rdb.HGet(ctx, keyAccountNames(), name).Result()
	if err != nil {
		return account.Account{}, wrap("account "+name, err)
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return account.Account{}, wrap("account "+name, err)
	}
	return s.Account(ctx, account.ID(id))
}

// Accounts lists every account by id.
func (s *Accounts) Accounts(ctx context.Context) ([]account.Account, error) {
	all, err := fields[account.Account](ctx, s.db, "accounts", keyAccounts())
	return slices.SortedFunc(maps.Values(all), func(a, b account.Account) int { return cmp.Compare(a.ID, b.ID) }), err
}

// putAccount saves an account, giving it the next free number if it has none.
//
//	KEYS  records, names, next
//	ARGV  JSON with the id as 0 when it is to be given, name, id or 0
//	result the id; 0 if the id belongs to another name or the name to another id
func putAccount() *redis.Script {
	return redis.NewScript(`
local id = tonumber(ARGV[3])
local held = redis.call('HGET', KEYS[2], ARGV[2])
if id == 0 then
  if held then
    id = tonumber(held)
  else
    repeat
      id = redis.call('INCR', KEYS[3])
    until redis.call('HEXISTS', KEYS[1], tostring(id)) == 0
  end
elseif held and tonumber(held) ~= id then
  return 0
elseif not held and redis.call('HEXISTS', KEYS[1], ARGV[3]) == 1 then
  return 0
end
local key = string.format('%d', id)
local record = string.gsub(ARGV[1], '^{"id":%-?%d+', '{"id":' .. key, 1)
redis.call('HSET', KEYS[1], key, record)
redis.call('HSET', KEYS[2], ARGV[2], key)
return id`)
}

// PutAccount saves an account and returns its id; id 0 asks for the one that
// the name has, or a new one. It returns relay.KindConflict if another account
// has the id.
func (s *Accounts) PutAccount(ctx context.Context, a account.Account) (account.ID, error) {
	out, err := s.db.eval(ctx, putAccount(), []call{{
		keys: []string{keyAccounts(), keyAccountNames(), keyAccountNext()},
		args: []any{encode(a), a.Name, a.ID.String()},
	}})
	if err != nil {
		return 0, wrap("account "+a.Name, err)
	}
	id, err := out[0].Int64()
	if err == nil && id == 0 {
		return 0, relay.Errorf(relay.KindConflict, "account %s: id %d belongs to another account", a.Name, a.ID)
	}
	return account.ID(id), wrap("account "+a.Name, err)
}

// SetCallback saves where an account is told what happens.
func (s *Accounts) SetCallback(ctx context.Context, id account.ID, url string) error {
	_, err := edit(ctx, s.db, "account", keyAccounts(), id.String(), keyAccountsVersion(), func(a *account.Account) error {
		a.CallbackURL = url
		return nil
	})
	return err
}

// Inventory returns the merged inventory as it was last saved, nil if none was.
func (s *Accounts) Inventory(ctx context.Context) ([]byte, error) {
	b, err := s.db.rdb.Get(ctx, keyInventory()).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return b, wrap("inventory", err)
}

// putInventory saves the merged inventory unless it changed meanwhile.
//
//	KEYS  inventory
//	ARGV  document as it was, "" for none; document as it shall be
//	result 1 saved, 0 changed meanwhile
func putInventory() *redis.Script {
	return redis.NewScript(`
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1`)
}

// PutInventory saves the merged inventory; was is the one it was merged into.
func (s *Accounts) PutInventory(ctx context.Context, was, document []byte) error {
	out, err := s.db.eval(ctx, putInventory(), []call{{keys: []string{keyInventory()}, args: []any{was, document}}})
	if err != nil {
		return wrap("inventory", err)
	}
	if saved, _ := out[0].Int(); saved == 0 {
		return relay.Errorf(relay.KindConflict, "inventory: another gateway applied one meanwhile")
	}
	return nil
}
