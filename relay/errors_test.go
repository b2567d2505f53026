package relay

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestErrorsKeepTheirKind(t *testing.T) {
	cause := Errorf(KindUnavailable, "redis: %w", io.EOF)
	for _, tc := range []struct {
		name string
		err  error
		want Kind
		text string
	}{
		{"one of ours", Errorf(KindNotFound, "device %s", "d1"), KindNotFound, "device d1"},
		{"one that was wrapped", fmt.Errorf("load: %w", Errorf(KindConflict, "taken")), KindConflict, "load: taken"},
		{"one joined to another", errors.Join(io.EOF, Errorf(KindForbidden, "no")), KindForbidden, "EOF\nno"},
		{"the outer kind counts", Errorf(KindInvalid, "bad: %w", cause), KindInvalid, "bad: redis: EOF"},
		{"any other", io.EOF, KindUnexpected, "EOF"},
		{"about a field", Invalid("name", "is required"), KindInvalid, "invalid name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if KindOf(tc.err) != tc.want || tc.err.Error() != tc.text {
				t.Errorf("%s: %q", KindOf(tc.err), tc.err)
			}
		})
	}
	if KindOf(nil) != KindUnexpected || !errors.Is(cause, io.EOF) {
		t.Error("the cause is out of reach")
	}
}

func TestFieldsOf(t *testing.T) {
	err := fmt.Errorf("create: %w", Invalid("name", "is required"))
	if got := FieldsOf(err)["name"]; len(got) != 1 || got[0] != "is required" {
		t.Errorf("%q", got)
	}
	if FieldsOf(io.EOF) != nil || FieldsOf(nil) != nil {
		t.Error("fields of nothing")
	}
}

func TestKindsHaveWords(t *testing.T) {
	seen := map[string]bool{}
	for k := KindUnexpected; k <= KindNoCredit; k++ {
		if seen[k.String()] {
			t.Errorf("%d: %s", k, k)
		}
		seen[k.String()] = true
	}
	if Kind(-1).String() != "unexpected" || Kind(99).String() != "unexpected" {
		t.Error("unknown kinds")
	}
}
