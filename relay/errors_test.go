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
		{"an Error", Errorf(KindNotFound, "device %s", "d1"), KindNotFound, "device d1"},
		{"a wrapped Error", fmt.Errorf("load: %w", Errorf(KindConflict, "taken")), KindConflict, "load: taken"},
		{"a joined Error", errors.Join(io.EOF, Errorf(KindForbidden, "no")), KindForbidden, "EOF\nno"},
		{"an Error that wraps another", Errorf(KindInvalid, "bad: %w", cause), KindInvalid, "bad: redis: EOF"},
		{"another error", io.EOF, KindUnexpected, "EOF"},
		{"an Error about a field", Invalid("name", "is required"), KindInvalid, "invalid name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if KindOf(tc.err) != tc.want || tc.err.Error() != tc.text {
				t.Errorf("kind = %s, text = %q, want %s and %q", KindOf(tc.err), tc.err, tc.want, tc.text)
			}
		})
	}
	if KindOf(nil) != KindUnexpected || !errors.Is(cause, io.EOF) {
		t.Error("KindOf(nil) is not unexpected, or the cause is not wrapped")
	}
}

func TestFieldsOf(t *testing.T) {
	err := fmt.Errorf("create: %w", Invalid("name", "is required"))
	if got := FieldsOf(err)["name"]; len(got) != 1 || got[0] != "is required" {
		t.Errorf("problems of name = %q, want is required", got)
	}
	if FieldsOf(io.EOF) != nil || FieldsOf(nil) != nil {
		t.Error("FieldsOf returned fields for an error without fields")
	}
}

func TestKindsHaveDifferentNames(t *testing.T) {
	seen := map[string]bool{}
	for k := KindUnexpected; k <= KindNoCredit; k++ {
		if seen[k.String()] {
			t.Errorf("kind %d has the name %s of another kind", k, k)
		}
		seen[k.String()] = true
	}
	if Kind(-1).String() != "unexpected" || Kind(99).String() != "unexpected" {
		t.Errorf("names of unknown kinds = %q and %q, want unexpected", Kind(-1), Kind(99))
	}
}
