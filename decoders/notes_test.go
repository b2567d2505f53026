package decoders_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestNotesAreBounded(t *testing.T) {
	var notes decoders.Notes
	notes.Add("", "a", "a", "b", strings.Repeat("x", 299)+"é")
	relaytest.Equal(t, "the notes", notes, decoders.Notes{"a", "b", strings.Repeat("x", 299) + "…"})
	for i := range 100 {
		notes.Add(fmt.Sprint(i))
	}
	relaytest.Equal(t, "the number of notes", len(notes), 20)
	relaytest.Equal(t, "the last note", notes[19], "further notes are omitted")
}
