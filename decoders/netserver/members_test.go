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
// replaces numbers and times by a string and an object. If a reading is lost, an error or a note
// must name the member, unless the value appears under the new name. No note is needed if a
// decoded value is removed, because a device may send its values in turn, or if another sender
// is detected. Times are optional in generic bodies and SenML, and names are optional in SenML.
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
		want := describeUplinks(frames)
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
				found, problems := describeUplinks(got), problemsOf(got, err)
				for _, lost := range missing(want, found) {
					if !m.explains(lost, found, problems) && (m.change != removed || !slices.Contains(optional, m.name())) {
						t.Errorf("%s: %s is lost without a note: %q", m, lost, problems)
					}
				}
			})
		})
	}
}

// mutation is a changed member.
type mutation struct {
	path       []string
	innerNames []string // the names of the members within the member
	change     string
}

// The changes of a member.
const (
	removed          = "removed"
	renamed          = "renamed"
	replacedByText   = "replaced by a text"
	replacedByObject = "replaced by an object"
)

const suffix = "Xx"

func (m mutation) String() string { return strings.Join(m.path, ".") + " " + m.change }

func (m mutation) name() string { return m.path[len(m.path)-1] }

// explains reports whether a problem or a value that was found explains a lost value.
func (m mutation) explains(lost string, found, problems []string) bool {
	names := append(m.innerNames, m.name())
	for _, problem := range problems {
		if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(problem, name) }) {
			return true
		}
	}
	if strings.HasPrefix(lost, "time 2") && slices.ContainsFunc(found, func(f string) bool { return isNear(f, lost) }) {
		return true // the time of another clock is used
	}
	isValue := strings.HasPrefix(lost, "value ") || strings.HasPrefix(lost, "time of ")
	hasPayload := slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, "payload ") })
	hasValue := slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, "value ") })
	if isValue && hasPayload || strings.HasPrefix(lost, "p") && hasValue {
		return true // the codec reads the payload or the value that is left
	}
	switch m.change {
	case renamed:
		return slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, m.name()+suffix) })
	case replacedByText, replacedByObject:
		return slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, m.name()) })
	}
	return isValue && slices.ContainsFunc(names, func(name string) bool { return strings.Contains(lost, name) })
}

// isNear reports whether two lines of describeUplinks are times less than clockSpan apart.
func isNear(a, b string) bool {
	timeA, err1 := time.Parse(time.RFC3339Nano, strings.TrimPrefix(a, "time "))
	timeB, err2 := time.Parse(time.RFC3339Nano, strings.TrimPrefix(b, "time "))
	return err1 == nil && err2 == nil && timeA.Sub(timeB).Abs() < clockSpan
}

// eachMember makes each change to each member of a body and calls fn with it.
func eachMember(v any, path []string, fn func(mutation)) {
	switch v := v.(type) {
	case []any:
		for i, item := range v[:min(len(v), 3)] {
			eachMember(item, append(path, strconv.Itoa(i)), fn)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			value, m := v[name], mutation{path: append(slices.Clone(path), name), innerNames: namesWithin(v[name])}
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
				change(replacedByText)
				v[name] = map[string]any{"x": 1.0}
				change(replacedByObject)
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
	encoded, _ := json.Marshal(text) // a string always marshals
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

// describeUplinks returns a line for each value, payload, port and time of the uplinks.
func describeUplinks(frames []decoders.Frame) (list []string) {
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
		if t := cmp.Or(f.SampleTime, f.NetworkTime); !t.IsZero() {
			list = append(list, "time "+t.Format(time.RFC3339Nano))
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

// problemsOf lists the notes of frames and the error.
func problemsOf(frames []decoders.Frame, err error) (problems []string) {
	for i := range frames {
		problems = append(append(problems, frames[i].TimeNote), frames[i].Warnings...)
		if frames[i].Encrypted {
			problems = append(problems, "the payload is encrypted") // the frame is quarantined
		}
	}
	if err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}
