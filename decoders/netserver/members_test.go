package netserver

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
	"github.com/penstock/penstock/decoders/values"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestNoMemberIsLostSilently removes and renames each member of each body of testdata, and
// replaces numbers and times by a string and an object. If that changes a reading, an error or
// a note must name the member, unless the value appears under the new name. No note is needed
// for a removed decoded value, because devices send values in turn, and for the member by which
// the sender is recognised, because the body is then another sender's. Generic bodies and
// SenML may have no times, and SenML records no names.
func TestNoMemberIsLostSilently(t *testing.T) {
	for _, path := range cases(t) {
		a, err := txtar.ParseFile(path)
		relaytest.NoError(t, err)
		original := post(t, a)
		var body any
		if json.Unmarshal(original.Body, &body) != nil {
			continue // XML and forms have the same members as JSON
		}
		frames, err := Parse(original)
		want := ingredients(frames)
		if err != nil || len(want) == 0 || frames[0].TimeNote != "" {
			continue
		}
		optional := []string{}
		switch Detect(original) {
		case Generic:
			optional = []string{"time", "timestamp"}
		case SenML, KPN:
			optional = []string{"n", "bt", "t"}
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			eachMember(body, nil, func(m mutation) {
				changed := original
				changed.Body = relaytest.Must(json.Marshal(body))(t)
				got, err := Parse(changed)
				if Detect(changed) != Detect(original) {
					return
				}
				found, remarks := ingredients(got), remarksOf(got, err)
				for _, lost := range missing(want, found) {
					if !m.explains(lost, found, remarks) && (m.change != removed || !slices.Contains(optional, m.name())) {
						t.Errorf("%s: %s is lost, and no note says why: %q", m, lost, remarks)
					}
				}
			})
		})
	}
}

// mutation is a changed member.
type mutation struct {
	path   []string
	inside []string // the names of the members within it
	change string
}

// The changes of a member.
const (
	removed    = "removed"
	renamed    = "renamed"
	madeText   = "made a text"
	madeObject = "made an object"
)

const suffix = "Xx"

func (m mutation) String() string { return strings.Join(m.path, ".") + " " + m.change }

func (m mutation) name() string { return m.path[len(m.path)-1] }

// explains reports whether the remarks or the new values account for the lost ones.
func (m mutation) explains(lost string, found, remarks []string) bool {
	names := append(m.inside, m.name())
	for _, remark := range remarks {
		if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(remark, name) }) {
			return true
		}
	}
	if strings.HasPrefix(lost, "time 2") && slices.ContainsFunc(found, func(f string) bool { return isNear(f, lost) }) {
		return true // another clock of the post
	}
	isValue := strings.HasPrefix(lost, "value ") || strings.HasPrefix(lost, "time of ")
	hasPayload := slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, "payload ") })
	hasValue := slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, "value ") })
	if isValue && hasPayload || strings.HasPrefix(lost, "p") && hasValue {
		return true // the codec has the other, or refuses the frame
	}
	switch m.change {
	case renamed:
		return slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, m.name()+suffix) })
	case madeText, madeObject:
		return slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, m.name()) })
	}
	return isValue && slices.ContainsFunc(names, func(name string) bool { return strings.Contains(lost, name) })
}

// isNear reports whether two ingredients are times less than a day apart.
func isNear(a, b string) bool {
	at, err1 := time.Parse(time.RFC3339Nano, strings.TrimPrefix(a, "time "))
	other, err2 := time.Parse(time.RFC3339Nano, strings.TrimPrefix(b, "time "))
	return err1 == nil && err2 == nil && at.Sub(other).Abs() < clockSpan
}

// eachMember calls fn with each member of a body changed.
func eachMember(v any, path []string, fn func(mutation)) {
	switch v := v.(type) {
	case []any:
		for i, item := range v[:min(len(v), 3)] {
			eachMember(item, append(path, strconv.Itoa(i)), fn)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			value, m := v[name], mutation{path: append(slices.Clone(path), name), inside: namesWithin(v[name])}
			change := func(kind string) {
				m.change = kind
				fn(m)
			}
			delete(v, name)
			change(removed)
			v[name+suffix] = value
			change(renamed)
			delete(v, name+suffix)
			if isNumberOrTime(value) {
				v[name] = "26/11/2026 12:00"
				change(madeText)
				v[name] = map[string]any{"x": 1.0}
				change(madeObject)
			}
			v[name] = value
			eachMember(value, m.path, fn)
		}
	}
}

func isNumberOrTime(v any) bool {
	text, isText := v.(string)
	if !isText {
		_, isNumber := v.(float64)
		return isNumber
	}
	encoded, _ := json.Marshal(text) // of a text
	r := jsonbody.New(encoded)
	_, ok := anyTime(r.Value())
	return ok && strings.Contains(text, ":")
}

func namesWithin(v any) (names []string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			names = append(names, namesWithin(item)...)
		}
	case map[string]any:
		for name, item := range v {
			names = append(append(names, name), namesWithin(item)...)
		}
	}
	return names
}

// ingredients returns the values of which the readings of uplinks are made.
func ingredients(frames []decoders.Frame) (list []string) {
	for i := range frames {
		f := &frames[i]
		if f.Kind != decoders.Uplink || f.Encrypted || f.Supplement {
			continue
		}
		var decoded decoders.Result
		if f.Object != nil {
			values.AppendTimed(&decoded, "", f.Object)
		}
		for _, r := range append(decoded.Readings, f.Samples...) {
			list = append(list, fmt.Sprintf("value %s = %v%s", r.Key, r.Value, r.Text))
			if !r.Time.IsZero() {
				list = append(list, fmt.Sprintf("time of %s = %s", r.Key, r.Time.Format(time.RFC3339Nano)))
			}
		}
		if len(f.Payload) > 0 {
			list = append(list, fmt.Sprintf("payload %s", hex.EncodeToString(f.Payload)), fmt.Sprintf("port %d %t", f.FPort, f.HasFPort))
		}
		if at := cmp.Or(f.SampleTime, f.NetworkTime); !at.IsZero() {
			list = append(list, "time "+at.Format(time.RFC3339Nano))
		}
	}
	return list
}

func missing(want, got []string) (lost []string) {
	for _, w := range want {
		if !slices.Contains(got, w) {
			lost = append(lost, w)
		}
	}
	return lost
}

// remarksOf lists the notes of frames and the error.
func remarksOf(frames []decoders.Frame, err error) (remarks []string) {
	for i := range frames {
		remarks = append(append(remarks, frames[i].TimeNote), frames[i].Warnings...)
		if frames[i].Encrypted {
			remarks = append(remarks, "the payload is encrypted") // the frame is quarantined
		}
	}
	if err != nil {
		remarks = append(remarks, err.Error())
	}
	return remarks
}
