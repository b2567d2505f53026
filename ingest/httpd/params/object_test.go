package params

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestObjectReturnsMembersOrAnError(t *testing.T) {
	for body, want := range map[string]any{
		` {"a": "x" , "b":1.50, "c" : null,"d":true,"e":false,"a":"last"} `: map[string]any{
			"a": "last", "b": json.Number("1.50"), "c": nil, "d": true, "e": false,
		},
		`{"l":[1,{"n":2}],"o": { "p":-1e400 }}`: map[string]any{
			"l": []any{json.Number("1"), map[string]any{"n": json.Number("2")}}, "o": map[string]any{"p": json.Number("-1e400")},
		},
		"{\"\\u0061\":\"\\ud83d\\ude00 \xff\"}": map[string]any{"a": "😀 \ufffd"},
		`{}`:                                    map[string]any{},
		``:                                      ErrSyntax,
		`{"a":1} x`:                             ErrSyntax,
		`{"a":1}{"a":1}`:                        ErrSyntax,
		`{"a":}`:                                ErrSyntax,
		`[1`:                                    ErrSyntax,
		`[1]`:                                   ErrNotObject,
		`null`:                                  ErrNotObject,
		`"a"`:                                   ErrNotObject,
		`7`:                                     ErrNotObject,
	} {
		members, err := Object([]byte(body))
		var got any = members
		if err != nil {
			got = err
		}
		if wantErr, isError := want.(error); isError {
			if err != wantErr { //nolint:errorlint // the same error
				t.Errorf("Object(%q) = %v, want %v", body, got, wantErr)
			}
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Object(%q): (-want +got)\n%s", body, diff)
		}
	}
}

func BenchmarkObject(b *testing.B) {
	body := []byte(`{"id":"b12345","from":"447700900123","to":"447800012345","text":"message 12345 & more"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Object(body); err != nil {
			b.Fatal(err)
		}
	}
}
