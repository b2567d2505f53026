package app

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/ingest/admin"
)

// printTried writes the results of frames as text.
func printTried(writer io.Writer, answer admin.TryAnswer) error {
	var b strings.Builder
	for i := range answer.Data {
		if i > 0 {
			b.WriteByte('\n')
		}
		printFrame(&b, i+1, &answer.Data[i])
	}
	_, err := io.WriteString(writer, b.String())
	return err
}

func printFrame(b *strings.Builder, n int, f *admin.TriedFrame) {
	fmt.Fprintf(b, "frame %d  %s", n, f.Time)
	for _, part := range []struct{ name, value string }{{"event ", f.Event}, {"device ", f.Identifier}, {"", f.Sender}, {"", f.Payload}} {
		if part.value != "" {
			b.WriteString("  " + part.name + part.value)
		}
	}
	if f.FPort != nil {
		fmt.Fprintf(b, "  port %d", *f.FPort)
	}
	fmt.Fprintf(b, "  %.0f µs\n", f.TookUS)
	for _, v := range f.Values {
		fmt.Fprintf(b, "  %s = %s", v.Key, shown(v.Value, v.Text))
		if v.Time != nil {
			b.WriteString("  at " + *v.Time)
		}
		b.WriteByte('\n')
	}
	for _, r := range f.Readings {
		fmt.Fprintf(b, "  reading %s (%s): %s%s\n", r.Key, r.SensorTypeID, shown(r.Value, r.Text), against(f, r))
	}
	for _, e := range f.Errors {
		b.WriteString("  error: " + e.Message + "\n")
	}
	for _, text := range f.Warnings {
		b.WriteString("  warning: " + text + "\n")
	}
	if f.Refused != "" && len(f.Errors) == 0 {
		b.WriteString("  nothing is stored: " + f.Refused + "\n")
	}
	for _, text := range f.Notes {
		if !slices.Contains(f.Warnings, text) && !slices.ContainsFunc(f.Errors, func(c admin.Complaint) bool { return c.Message == text }) {
			b.WriteString("  note: " + text + "\n")
		}
	}
}

// against compares a reading with the stored one.
func against(f *admin.TriedFrame, r admin.TriedReading) string {
	if r.Effect == "" {
		return ""
	}
	for _, s := range f.Stored {
		if s.SensorID == r.SensorID && s.Time == r.Time {
			return ", stored is " + shown(s.Value, s.Text)
		}
	}
	return ", nothing is stored"
}

func shown(value *float64, text *string) string {
	switch {
	case text != nil:
		return strconv.Quote(*text)
	case value == nil:
		return "null"
	}
	return strconv.FormatFloat(*value, 'g', -1, 64)
}
