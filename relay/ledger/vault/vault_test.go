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

// memoryKeysets keeps keysets in memory.
type memoryKeysets struct {
	mu   sync.Mutex
	kept map[relay.AccountID][]byte
}

func (s *memoryKeysets) Keyset(_ context.Context, acct relay.AccountID) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[acct] == nil {
		return nil, relay.Errorf(relay.KindNotFound, "keyset")
	}
	return s.kept[acct], nil
}

func (s *memoryKeysets) PutKeyset(_ context.Context, acct relay.AccountID, was, is []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !bytes.Equal(s.kept[acct], was) {
		return relay.Errorf(relay.KindConflict, "keyset")
	}
	s.kept[acct] = is
	return nil
}

func open(t testing.TB, s Store, keys ...string) *Vault {
	t.Helper()
	v, err := New(s, keys)
	relaytest.NoError(t, err)
	return v
}

func sealed(t testing.TB, v *Vault, acct relay.AccountID, plain, about string) []byte {
	t.Helper()
	b, err := v.Seal(t.Context(), acct, []byte(plain), about)
	relaytest.NoError(t, err)
	return b
}

func TestOnlyWhatWasSealedOpens(t *testing.T) {
	s := &memoryKeysets{kept: map[relay.AccountID][]byte{}}
	key := NewMasterKey()
	v := open(t, s, key)
	box := sealed(t, v, 1, "the private metadata", "token a")
	sealed(t, v, 2, "x", "y")
	if bytes.Contains(box, []byte("private")) {
		t.Error("it can be read")
	}
	if got, err := open(t, s, key).Open(t.Context(), 1, box, "token a"); err != nil || string(got) != "the private metadata" {
		t.Fatalf("%q, %v", got, err)
	}
	changed := bytes.Clone(box)
	changed[len(changed)-1] ^= 1
	for name, tc := range map[string]struct {
		acct  relay.AccountID
		box   []byte
		about string
	}{
		"another token's":   {1, box, "token b"},
		"another account's": {2, box, "token a"},
		"one bit changed":   {1, changed, "token a"},
		"cut":               {1, box[:10], "token a"},
		"nothing":           {1, nil, "token a"},
	} {
		if got, err := v.Open(t.Context(), tc.acct, tc.box, tc.about); err == nil {
			t.Errorf("%s opens: %q", name, got)
		}
	}
}

func TestMasterKeysRotate(t *testing.T) {
	s := &memoryKeysets{kept: map[relay.AccountID][]byte{}}
	older, newer := NewMasterKey(), NewMasterKey()
	box := sealed(t, open(t, s, older), 1, "kept", "a")
	before := string(s.kept[1])
	if _, err := open(t, s, newer).Open(t.Context(), 1, box, "a"); err == nil || !strings.Contains(err.Error(), "not configured") {
		t.Fatalf("without the old key: %v", err)
	}
	both := open(t, s, newer, older)
	if got, err := both.Open(t.Context(), 1, box, "a"); err != nil || string(got) != "kept" || string(s.kept[1]) != before {
		t.Errorf("opened in front of the renewal: %q, %v; the store was written: %t", got, err, string(s.kept[1]) != before)
	}
	if _, err := both.Open(t.Context(), 2, box, "a"); err == nil || relay.KindOf(err) == relay.KindNotFound || s.kept[2] != nil {
		t.Errorf("of an account without keys: %v", err)
	}
	if err := both.Renew(t.Context(), 1); err != nil || string(s.kept[1]) == before {
		t.Fatalf("not wrapped anew: %v", err)
	}
	after := string(s.kept[1])
	if err := both.Renew(t.Context(), 1); err != nil || string(s.kept[1]) != after {
		t.Errorf("wrapped twice: %v", err)
	}
	if err := both.Renew(t.Context(), 9); err != nil || s.kept[9] != nil {
		t.Errorf("an account without keys: %v", err)
	}
	alone := open(t, s, newer)
	if got, err := alone.Open(t.Context(), 1, box, "a"); err != nil || string(got) != "kept" {
		t.Errorf("%q, %v", got, err)
	}
	// One that was there before the rotation opens what is sealed after it.
	running := open(t, s, newer)
	sealed(t, running, 1, "x", "a")
	third := NewMasterKey()
	fresh := sealed(t, open(t, s, third, newer), 1, "fresh", "a")
	if _, err := running.Open(t.Context(), 1, fresh, "a"); err == nil || !strings.Contains(err.Error(), "not configured") {
		t.Errorf("with keys that are gone: %v", err)
	}
}

// A database may be replaced by another one while a gateway runs.
func TestForgottenKeysAreReadFromTheStoreThatIsThere(t *testing.T) {
	s := &memoryKeysets{kept: map[relay.AccountID][]byte{}}
	key := NewMasterKey()
	running := open(t, s, key)
	sealed(t, running, 1, "before", "a")
	clear(s.kept)
	sealed(t, open(t, s, key), 1, "of the other database", "a")
	running.Forget()
	box := sealed(t, running, 1, "kept", "a")
	if got, err := open(t, s, key).Open(t.Context(), 1, box, "a"); err != nil || string(got) != "kept" {
		t.Errorf("after a restart: %q, %v", got, err)
	}
}

// contradiction is a store in which a keyset is both missing and there.
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
	s := &memoryKeysets{kept: map[relay.AccountID][]byte{}}
	older, newer := NewMasterKey(), NewMasterKey()
	first := sealed(t, open(t, s, older), 1, "x", "a")
	second := sealed(t, open(t, s, newer, older), 1, "x", "a")
	if bytes.Equal(first[:5], second[:5]) { // tink's prefix names the key
		t.Error("the same key seals")
	}
}

func TestManyMakeOneKeyset(t *testing.T) {
	s := &memoryKeysets{kept: map[relay.AccountID][]byte{}}
	key := NewMasterKey()
	boxes := make([][]byte, 20)
	var all sync.WaitGroup
	for i := range boxes {
		all.Go(func() { boxes[i] = sealed(t, open(t, s, key), 1, "x", "a") })
	}
	all.Wait()
	for _, b := range boxes {
		if _, err := open(t, s, key).Open(t.Context(), 1, b, "a"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMasterKeysThatAreNone(t *testing.T) {
	for _, keys := range [][]string{nil, {""}, {"AAAA"}, {NewMasterKey(), "x"}} {
		if _, err := New(&memoryKeysets{}, keys); err == nil {
			t.Errorf("%q", keys)
		}
	}
	if _, err := New(&memoryKeysets{}, []string{NewMasterKey()}); err != nil {
		t.Error(err)
	}
}

// FuzzOpen holds that nothing opens that was not sealed.
func FuzzOpen(f *testing.F) {
	v := open(f, &memoryKeysets{kept: map[relay.AccountID][]byte{}}, NewMasterKey())
	box := sealed(f, v, 1, "plain", "a")
	f.Add(box)
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := v.Open(t.Context(), 1, b, "a"); err == nil && (string(got) != "plain" || !bytes.Equal(b, box)) {
			t.Fatalf("%x opens: %q", b, got)
		}
	})
}

func TestWhatAReplacedStoreCannotOpenIsNotVerified(t *testing.T) {
	s := &memoryKeysets{kept: map[relay.AccountID][]byte{}}
	older, newer := NewMasterKey(), NewMasterKey()
	running := open(t, s, older, newer)
	box := sealed(t, running, 1, "x", "a")
	verify := func(stored, box []byte) relay.Kind {
		t.Helper()
		if err := running.Verify(1, stored, box, "a"); err != nil {
			return relay.KindOf(err)
		}
		return -1
	}
	relaytest.Equal(t, "with the keyset that it has loaded", verify(s.kept[1], box), -1)
	sealed(t, open(t, s, newer, older), 1, "x", "a") // adds a key
	relaytest.Equal(t, "with a key more, of another gateway", verify(s.kept[1], box), -1)
	before := s.kept[1]
	sealed(t, running, 1, "x", "a")
	relaytest.Equal(t, "the keyset after another seal", s.kept[1], before)

	clear(s.kept)
	relaytest.Equal(t, "with an empty store", verify(nil, box), relay.KindUnavailable)
	other := open(t, s, older)
	sealed(t, other, 1, "x", "a")
	relaytest.Equal(t, "with another store", verify(s.kept[1], box), relay.KindUnavailable)
	box = sealed(t, running, 1, "x", "a")
	relaytest.Equal(t, "sealed again", verify(s.kept[1], box), -1)
	if _, err := other.Open(t.Context(), 1, box, "a"); err != nil {
		t.Error(err)
	}
}
