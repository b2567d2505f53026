package vault

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

// memoryKeysets is a Store in memory.
type memoryKeysets struct {
	mu      sync.Mutex
	keysets map[relay.AccountID][]byte
}

func (m *memoryKeysets) Keyset(_ context.Context, acct relay.AccountID) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keysets[acct] == nil {
		return nil, relay.Errorf(relay.KindNotFound, "keyset")
	}
	return m.keysets[acct], nil
}

func (m *memoryKeysets) PutKeyset(_ context.Context, acct relay.AccountID, oldKeyset, newKeyset []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !bytes.Equal(m.keysets[acct], oldKeyset) {
		return relay.Errorf(relay.KindConflict, "keyset")
	}
	m.keysets[acct] = newKeyset
	return nil
}

func open(t testing.TB, s Store, keys ...string) *Vault {
	t.Helper()
	v, err := New(s, keys)
	relaytest.NoError(t, err)
	return v
}

func sealed(t testing.TB, v *Vault, acct relay.AccountID, plain, purpose string) []byte {
	t.Helper()
	b, err := v.Seal(t.Context(), acct, []byte(plain), purpose)
	relaytest.NoError(t, err)
	return b
}

func TestOnlySealedDataOpens(t *testing.T) {
	s := &memoryKeysets{keysets: map[relay.AccountID][]byte{}}
	key := NewMasterKey()
	v := open(t, s, key)
	box := sealed(t, v, 1, "the private metadata", "token a")
	sealed(t, v, 2, "x", "y")
	if bytes.Contains(box, []byte("private")) {
		t.Error("the sealed data contains the plaintext")
	}
	if got, err := open(t, s, key).Open(t.Context(), 1, box, "token a"); err != nil || string(got) != "the private metadata" {
		t.Fatalf("Open: %q, error %v", got, err)
	}
	changed := bytes.Clone(box)
	changed[len(changed)-1] ^= 1
	for name, tc := range map[string]struct {
		acct    relay.AccountID
		box     []byte
		purpose string
	}{
		"another purpose": {1, box, "token b"},
		"another account": {2, box, "token a"},
		"changed bit":     {1, changed, "token a"},
		"truncated":       {1, box[:10], "token a"},
		"empty data":      {1, nil, "token a"},
	} {
		if got, err := v.Open(t.Context(), tc.acct, tc.box, tc.purpose); err == nil {
			t.Errorf("%s: Open returned %q, want an error", name, got)
		}
	}
}

func TestMasterKeysRotate(t *testing.T) {
	s := &memoryKeysets{keysets: map[relay.AccountID][]byte{}}
	older, newer := NewMasterKey(), NewMasterKey()
	box := sealed(t, open(t, s, older), 1, "kept", "a")
	oldWrapped := string(s.keysets[1])
	if _, err := open(t, s, newer).Open(t.Context(), 1, box, "a"); err == nil || !strings.Contains(err.Error(), "not configured") {
		t.Fatalf("Open without the old key: error %v, want \"not configured\"", err)
	}
	withBothKeys := open(t, s, newer, older)
	if got, err := withBothKeys.Open(t.Context(), 1, box, "a"); err != nil || string(got) != "kept" || string(s.keysets[1]) != oldWrapped {
		t.Errorf("Open before Renew: %q, error %v; stored keyset changed: %t", got, err, string(s.keysets[1]) != oldWrapped)
	}
	if _, err := withBothKeys.Open(t.Context(), 2, box, "a"); err == nil || relay.KindOf(err) == relay.KindNotFound || s.keysets[2] != nil {
		t.Errorf("Open in an account without a keyset: error %v, keyset %x", err, s.keysets[2])
	}
	if err := withBothKeys.Renew(t.Context(), 1); err != nil || string(s.keysets[1]) == oldWrapped {
		t.Fatalf("Renew did not wrap the keyset with the new key: error %v", err)
	}
	renewed := string(s.keysets[1])
	if err := withBothKeys.Renew(t.Context(), 1); err != nil || string(s.keysets[1]) != renewed {
		t.Errorf("a second Renew changed the keyset: error %v", err)
	}
	if err := withBothKeys.Renew(t.Context(), 9); err != nil || s.keysets[9] != nil {
		t.Errorf("Renew in an account without a keyset: error %v, keyset %x", err, s.keysets[9])
	}
	withNewKey := open(t, s, newer)
	if got, err := withNewKey.Open(t.Context(), 1, box, "a"); err != nil || string(got) != "kept" {
		t.Errorf("Open with the new key only: %q, error %v", got, err)
	}
	// A vault with the old keys cannot decrypt data that was sealed after the next rotation.
	oldVault := open(t, s, newer)
	sealed(t, oldVault, 1, "x", "a")
	third := NewMasterKey()
	newBox := sealed(t, open(t, s, third, newer), 1, "fresh", "a")
	if _, err := oldVault.Open(t.Context(), 1, newBox, "a"); err == nil || !strings.Contains(err.Error(), "not configured") {
		t.Errorf("Open in a vault without the third key: error %v, want \"not configured\"", err)
	}
}

// The database may be replaced while a gateway runs.
func TestForgottenKeysAreReadFromTheStoreAgain(t *testing.T) {
	s := &memoryKeysets{keysets: map[relay.AccountID][]byte{}}
	key := NewMasterKey()
	running := open(t, s, key)
	sealed(t, running, 1, "before", "a")
	clear(s.keysets)
	sealed(t, open(t, s, key), 1, "of the other database", "a")
	running.Forget()
	box := sealed(t, running, 1, "kept", "a")
	if got, err := open(t, s, key).Open(t.Context(), 1, box, "a"); err != nil || string(got) != "kept" {
		t.Errorf("Open after a restart: %q, error %v", got, err)
	}
}

// contradiction is a Store that reports a keyset as missing when it is read and as existing
// when it is written.
type contradiction struct{}

func (contradiction) Keyset(context.Context, relay.AccountID) ([]byte, error) {
	return nil, relay.Errorf(relay.KindNotFound, "keyset")
}

func (contradiction) PutKeyset(context.Context, relay.AccountID, []byte, []byte) error {
	return relay.Errorf(relay.KindConflict, "keyset")
}

func TestAKeysetThatCannotBeSavedIsAnError(t *testing.T) {
	_, err := open(t, contradiction{}, NewMasterKey()).Seal(t.Context(), 1, []byte("x"), "a")
	relaytest.Equal(t, "the kind of the error", relay.KindOf(err), relay.KindConflict)
}

func TestAFreshKeySealsAfterARotation(t *testing.T) {
	s := &memoryKeysets{keysets: map[relay.AccountID][]byte{}}
	older, newer := NewMasterKey(), NewMasterKey()
	oldBox := sealed(t, open(t, s, older), 1, "x", "a")
	newBox := sealed(t, open(t, s, newer, older), 1, "x", "a")
	if bytes.Equal(oldBox[:5], newBox[:5]) { // the prefix is the id of the key
		t.Error("both ciphertexts have the same key id")
	}
}

func TestConcurrentVaultsCreateOneKeyset(t *testing.T) {
	s := &memoryKeysets{keysets: map[relay.AccountID][]byte{}}
	key := NewMasterKey()
	boxes := make([][]byte, 20)
	var wg sync.WaitGroup
	for i := range boxes {
		wg.Go(func() { boxes[i] = sealed(t, open(t, s, key), 1, "x", "a") })
	}
	wg.Wait()
	for _, b := range boxes {
		if _, err := open(t, s, key).Open(t.Context(), 1, b, "a"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInvalidMasterKeysAreRefused(t *testing.T) {
	for _, keys := range [][]string{nil, {""}, {"AAAA"}, {NewMasterKey(), "x"}} {
		if _, err := New(&memoryKeysets{}, keys); err == nil {
			t.Errorf("New accepted the master keys %q", keys)
		}
	}
	if _, err := New(&memoryKeysets{}, []string{NewMasterKey()}); err != nil {
		t.Error(err)
	}
}

// FuzzOpen checks that only sealed data opens.
func FuzzOpen(f *testing.F) {
	v := open(f, &memoryKeysets{keysets: map[relay.AccountID][]byte{}}, NewMasterKey())
	box := sealed(f, v, 1, "plain", "a")
	f.Add(box)
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := v.Open(t.Context(), 1, b, "a"); err == nil && (string(got) != "plain" || !bytes.Equal(b, box)) {
			t.Fatalf("Open(%x) = %q, want an error", b, got)
		}
	})
}

func TestVerifyRefusesDataThatTheStoredKeysetCannotOpen(t *testing.T) {
	s := &memoryKeysets{keysets: map[relay.AccountID][]byte{}}
	older, newer := NewMasterKey(), NewMasterKey()
	running := open(t, s, older, newer)
	box := sealed(t, running, 1, "x", "a")
	verifyKind := func(stored, box []byte) relay.Kind { // -1 means success
		t.Helper()
		if err := running.Verify(1, stored, box, "a"); err != nil {
			return relay.KindOf(err)
		}
		return -1
	}
	relaytest.Equal(t, "with the loaded keyset", verifyKind(s.keysets[1], box), -1)
	sealed(t, open(t, s, newer, older), 1, "x", "a") // adds a key
	relaytest.Equal(t, "with a keyset to which another gateway has added a key", verifyKind(s.keysets[1], box), -1)
	keyset := s.keysets[1]
	sealed(t, running, 1, "x", "a")
	relaytest.Equal(t, "the keyset after another seal", s.keysets[1], keyset)

	clear(s.keysets)
	relaytest.Equal(t, "with an empty store", verifyKind(nil, box), relay.KindUnavailable)
	otherVault := open(t, s, older)
	sealed(t, otherVault, 1, "x", "a")
	relaytest.Equal(t, "with the keyset of another store", verifyKind(s.keysets[1], box), relay.KindUnavailable)
	box = sealed(t, running, 1, "x", "a")
	relaytest.Equal(t, "data sealed after the failure", verifyKind(s.keysets[1], box), -1)
	if _, err := otherVault.Open(t.Context(), 1, box, "a"); err != nil {
		t.Error(err)
	}
}
