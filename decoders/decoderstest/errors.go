// Package decoderstest provides checks that the tests of several decoders share.
package decoderstest

import (
	"errors"
	"testing"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/relaytest"
)

// Refused reports a test failure, without ending the test, unless err is a *decoders.Error with
// a format, a field and an offset. It does not check the reason.
func Refused(t testing.TB, err error, format, field string, offset int) {
	t.Helper()
	got, ok := errors.AsType[*decoders.Error](err)
	if !ok {
		t.Errorf("error = %v, want a *decoders.Error of %s in %s at offset %d", err, format, field, offset)
		return
	}
	relaytest.Equal(t, "the error", *got, decoders.Error{Format: format, Field: field, Offset: offset, Reason: got.Reason})
}

// ErrorText returns the text of err, or "" if err is nil.
func ErrorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
