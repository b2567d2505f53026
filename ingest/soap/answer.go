package soap

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay"
)

// responseCode is the result of a request.
type responseCode int

// The codes.
const (
	accepted    responseCode = 0
	noCredit    responseCode = 2
	invalid     responseCode = 3
	unavailable responseCode = 4
)

// answer is the answer to a request.
type answer struct {
	code        responseCode
	credits     int64 // that this request used
	description string
}

// encode writes the envelope, children in the order of their description.
func (a answer) encode(v version, o operation) []byte {
	texts := map[string]string{
		"responsecode": strconv.Itoa(int(a.code)), "creditsused": strconv.FormatInt(a.credits, 10), "description": a.description,
	}
	var b bytes.Buffer
	b.WriteString("<" + o.answerName() + ` xmlns="` + Namespace + `">`)
	for _, e := range answered() {
		leaf(&b, e.name, texts[e.name])
	}
	b.WriteString("</" + o.answerName() + ">")
	return wrap(v, b.Bytes())
}

// refusal returns the answer to an error that a client can correct, and any other error.
func refusal(o operation, err error) (answer, error) {
	switch relay.KindOf(err) {
	case relay.KindNoCredit:
		return answer{code: noCredit, description: "Insufficient credit."}, nil
	case relay.KindInvalid:
		return answer{code: invalid, description: "Invalid request: " + inElements(o, relay.FieldsOf(err)) + "."}, nil
	case relay.KindUnavailable:
		return answer{code: unavailable, description: later}, nil
	}
	return answer{}, err
}

// inElements describes invalid parameters by the names of their elements.
func inElements(o operation, fields map[string][]string) string {
	paths := pathsOf(o.children, "")
	var reasons []string
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		path := field
		if p, ok := paths[field]; ok {
			path = p
		}
		for _, reason := range fields[field] {
			reason = strings.ReplaceAll(reason, "The "+field+" ", "The "+path+" ")
			reasons = append(reasons, fmt.Sprintf("%s: %s", path, strings.TrimSuffix(reason, ".")))
		}
	}
	return strings.Join(reasons, "; ")
}
