// Package vault seals secrets before they are stored: keys of ledgers, private tokens, private
// metadata, signing secrets. Sealing is tink's AEAD, XChaCha20-Poly1305: a sealed value that was
// changed, or belongs to another record, cannot be decrypted.
//
// Every account has its own keyset. The store has the keyset, wrapped by a master key that is not
// in the store. If a new master key precedes the old ones, Renew rewraps a keyset and adds a
// fresh key to it; values that were sealed before can still be opened.
package vault

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/aead/subtle"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/penstock/penstock/relay"
)

// ErrMasterKey means that keys are wrapped by a master key that is not configured. An error that
// wraps it is relay.KindUnavailable, because the call succeeds once the key is configured.
var ErrMasterKey = errors.New("wrapped by a master key that is not configured")

const masterSize = 32

// NewMasterKey returns a new master key: the base64 of 32 random bytes.
func NewMasterKey() string {
	b := make([]byte, masterSize)
	_, _ = rand.Read(b) // never fails, see crypto/rand
	return base64.StdEncoding.EncodeToString(b)
}

type master struct {
	id  string
	key tink.AEAD
}

// Store stores wrapped keysets; *ledger.Store implements it.
type Store interface {
	// Keyset loads the keyset of an account; relay.KindNotFound if there is none.
	Keyset(ctx context.Context, acct relay.AccountID) ([]byte, error)
	// PutKeyset replaces the keyset of an account, which must equal stored, by a fresh one. stored is
	// nil for an account without a keyset. PutKeyset returns relay.KindConflict if the store has
	// another keyset.
	PutKeyset(ctx context.Context, acct relay.AccountID, stored, fresh []byte) error
}

// Vault seals and opens secrets of accounts. It is safe for concurrent use.
type Vault struct {
	store   Store
	masters []master // the first wraps keysets; each can unwrap the keysets that it wrapped

	mu   sync.Mutex
	keys map[relay.AccountID]loadedKey
}

// New returns a vault with master keys of NewMasterKey, newest first.
func New(store Store, keys []string) (*Vault, error) {
	if len(keys) == 0 {
		return nil, errors.New("vault: the master key is missing")
	}
	v := &Vault{store: store, keys: make(map[relay.AccountID]loadedKey)}
	for i, text := range keys {
		m, err := parseMaster(text)
		if err != nil {
			return nil, fmt.Errorf("vault: master key %d of ledger.master_key, ledger.master_key_file or the file ledger-key is damaged: restore it from a backup: %w", i+1, err)
		}
		v.masters = append(v.masters, m)
	}
	return v, nil
}

func parseMaster(text string) (master, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != masterSize {
		return master{}, errors.New("it must be the base64 of 32 bytes")
	}
	key, err := subtle.NewXChaCha20Poly1305(b)
	sum := sha256.Sum256(append([]byte("penstock master key\n"), b...))
	return master{hex.EncodeToString(sum[:8]), key}, err
}

// MissingKey returns the id of a master key that wraps one of the keysets and is not among keys;
// empty if none is missing.
func MissingKey(keys []string, keysets [][]byte) (id string, err error) {
	known := make(map[string]bool)
	for _, text := range keys {
		m, err := parseMaster(text)
		if err != nil {
			return "", fmt.Errorf("vault: master key: %w", err)
		}
		known[m.id] = true
	}
	for _, b := range keysets {
		var w wrappedKeyset
		if err := json.Unmarshal(b, &w); err != nil {
			return "", fmt.Errorf("vault: keyset: %w", err)
		}
		if !known[w.Master] {
			return w.Master, nil
		}
	}
	return "", nil
}

// Seal seals plain for an account. Open needs the same subject. Seal creates a
// keyset if the account has none.
func (v *Vault) Seal(ctx context.Context, acct relay.AccountID, plain []byte, subject string) ([]byte, error) {
	key := v.cachedKey(acct)
	if !key.current {
		handle, stored, err := v.currentKeyset(ctx, acct, true)
		if err != nil {
			return nil, err
		}
		if key.key, err = v.keep(acct, handle, loadedKey{stored: stored, current: true}); err != nil {
			return nil, err
		}
	}
	return key.key.Encrypt(plain, associatedData(acct, subject))
}

// SealLoaded seals like Seal, but only with loaded keys, without the store. It returns
// relay.KindUnavailable if no current keys are loaded.
func (v *Vault) SealLoaded(acct relay.AccountID, plain []byte, subject string) ([]byte, error) {
	key := v.cachedKey(acct)
	if !key.current {
		return nil, relay.Errorf(relay.KindUnavailable, "vault: account %s: its keys are not loaded", acct)
	}
	return key.key.Encrypt(plain, associatedData(acct, subject))
}

// Open decrypts data that was sealed for the account with the same subject. It never writes to
// the store.
func (v *Vault) Open(ctx context.Context, acct relay.AccountID, sealed []byte, subject string) ([]byte, error) {
	if plain, err := v.OpenLoaded(acct, sealed, subject); err == nil {
		return plain, nil
	}
	if err := v.Load(ctx, acct); err != nil { // another gateway may have added a key
		return nil, err
	}
	return v.OpenLoaded(acct, sealed, subject)
}

// OpenLoaded opens like Open, but only with loaded keys, without the store.
func (v *Vault) OpenLoaded(acct relay.AccountID, sealed []byte, subject string) ([]byte, error) {
	key := v.cachedKey(acct).key
	if key == nil {
		return nil, fmt.Errorf("vault: account %s: its keys are not loaded", acct)
	}
	if plain, err := key.Decrypt(sealed, associatedData(acct, subject)); err == nil {
		return plain, nil
	}
	return nil, fmt.Errorf("vault: account %s: %s cannot be decrypted: it was changed, or belongs to another record", acct, subject)
}

// Load reads the keys of an account from the store.
func (v *Vault) Load(ctx context.Context, acct relay.AccountID) error {
	stored, err := v.store.Keyset(ctx, acct)
	if relay.KindOf(err) == relay.KindNotFound {
		return fmt.Errorf("vault: account %s: its keyset is missing", acct)
	}
	if err != nil {
		return err
	}
	handle, current, err := v.unwrap(acct, stored)
	if err != nil {
		return err
	}
	_, err = v.keep(acct, handle, loadedKey{stored: stored, current: current})
	return err
}

// Verify checks the keyset that the store has now: stored, or nil if there is none. It returns nil if
// the keyset opens sealed, a result of Seal. Otherwise the store was replaced by another one: Verify
// drops the loaded keys, so that the next Seal reads them again, and returns relay.KindUnavailable.
func (v *Vault) Verify(acct relay.AccountID, stored, sealed []byte, subject string) error {
	key := v.cachedKey(acct)
	if key.key == nil || !bytes.Equal(key.stored, stored) {
		handle, _, err := v.unwrap(acct, stored)
		if err != nil {
			return err
		}
		if key.key, err = newAEAD(acct, handle); err != nil {
			return err
		}
	}
	opens := false
	if key.key != nil {
		_, err := key.key.Decrypt(sealed, associatedData(acct, subject))
		opens = err == nil
	}
	if opens {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.keys, acct)
	return relay.Errorf(relay.KindUnavailable, "vault: account %s: its keys in the database have changed: the database was replaced", acct)
}

// Forget drops all loaded keys, so that they are read from the store again: the store may have
// been replaced by another database.
func (v *Vault) Forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.keys)
}

func associatedData(acct relay.AccountID, subject string) []byte {
	return []byte("penstock\n" + acct.String() + "\n" + subject)
}

// Renew wraps an account's keyset by the newest master key and adds a fresh key to it, unless the
// newest master key wraps it already. It does nothing for an account without a keyset.
func (v *Vault) Renew(ctx context.Context, acct relay.AccountID) error {
	_, _, err := v.currentKeyset(ctx, acct, false)
	if relay.KindOf(err) == relay.KindNotFound {
		return nil
	}
	return err
}

// loadedKey is the AEAD of an account's keyset.
type loadedKey struct {
	key     tink.AEAD
	stored  []byte // the wrapped keyset
	current bool   // the newest master key wraps the keyset, so that its keys may seal
}

func (v *Vault) cachedKey(acct relay.AccountID) loadedKey {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.keys[acct]
}

func (v *Vault) keep(acct relay.AccountID, handle *keyset.Handle, key loadedKey) (tink.AEAD, error) {
	var err error
	if key.key, err = newAEAD(acct, handle); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keys[acct] = key
	return key.key, nil
}

// newAEAD returns the AEAD of a keyset; nil for a nil keyset.
func newAEAD(acct relay.AccountID, handle *keyset.Handle) (tink.AEAD, error) {
	if handle == nil {
		return nil, nil
	}
	key, err := aead.New(handle)
	if err != nil {
		return nil, fmt.Errorf("vault: account %s: %w", acct, err)
	}
	return key, nil
}

type wrappedKeyset struct {
	Master string `json:"master"` // id of the master key
	Keyset []byte `json:"keyset"`
}

// maxConflicts is the number of times that currentKeyset starts again because the stored keyset has
// changed: every other gateway may add a key at the same time.
const maxConflicts = 100

// currentKeyset returns an account's keyset, and its stored form. It wraps the keyset by the newest
// master key if necessary. With create set, it creates a missing keyset.
func (v *Vault) currentKeyset(ctx context.Context, acct relay.AccountID, create bool) (handle *keyset.Handle, stored []byte, err error) {
	for conflicts := 0; ; conflicts++ {
		stored, err := v.store.Keyset(ctx, acct)
		if relay.KindOf(err) == relay.KindNotFound && create {
			stored, err = nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		handle, current, err := v.unwrap(acct, stored)
		if err != nil || current {
			return handle, stored, err
		}
		fresh, err := withFreshKey(handle)
		if err != nil {
			return nil, nil, fmt.Errorf("vault: account %s: %w", acct, err)
		}
		var b bytes.Buffer
		if err := fresh.WriteWithAssociatedData(keyset.NewBinaryWriter(&b), v.masters[0].key, associatedData(acct, "keyset")); err != nil {
			return nil, nil, fmt.Errorf("vault: account %s: wrap: %w", acct, err)
		}
		rewrapped, err := json.Marshal(wrappedKeyset{v.masters[0].id, b.Bytes()})
		if err != nil {
			return nil, nil, err
		}
		err = v.store.PutKeyset(ctx, acct, stored, rewrapped)
		if relay.KindOf(err) != relay.KindConflict || conflicts == maxConflicts {
			return fresh, rewrapped, err
		}
	}
}

// unwrap reads a stored keyset; current reports whether the newest master key wraps it.
func (v *Vault) unwrap(acct relay.AccountID, b []byte) (h *keyset.Handle, current bool, err error) {
	if b == nil {
		return nil, false, nil
	}
	var w wrappedKeyset
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, false, fmt.Errorf("vault: account %s: keyset: %w", acct, err)
	}
	for i, m := range v.masters {
		if m.id != w.Master {
			continue
		}
		h, err := keyset.ReadWithAssociatedData(keyset.NewBinaryReader(bytes.NewReader(w.Keyset)), m.key, associatedData(acct, "keyset"))
		if err != nil {
			return nil, false, fmt.Errorf("vault: account %s: keyset: %w", acct, err)
		}
		return h, i == 0, nil
	}
	return nil, false, relay.Errorf(relay.KindUnavailable, "vault: account %s: %w: %s", acct, ErrMasterKey, w.Master)
}

// withFreshKey returns a keyset with a fresh key, which seals from then on. h may be nil.
func withFreshKey(h *keyset.Handle) (*keyset.Handle, error) {
	template := aead.XChaCha20Poly1305KeyTemplate()
	if h == nil {
		return keyset.NewHandle(template)
	}
	m := keyset.NewManagerFromHandle(h)
	id, err := m.Add(template)
	if err != nil {
		return nil, err
	}
	if err := m.SetPrimary(id); err != nil {
		return nil, err
	}
	return m.Handle()
}
