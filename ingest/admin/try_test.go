package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/catalog"
	"github.com/penstock/penstock/decoders/catalog/catalogtest"
	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestInvalidTryRequestsAreRefused(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"invalid JSON", `{`, "Invalid JSON."},
		{"no frames", `{}`, "frames:[Give frames, or a device_id and last.]"},
		{"an unknown field", `{"payload":"00"}`, "payload:[This field is unknown.]"},
		{"a field of another type", `{"frames":[{"hex":7}]}`, "frames.hex:[The frames.hex must be a string.]"},
		{"an empty frame", `{"frames":[{}]}`, "frames.0:[Give exactly one of hex, base64, values and body.]"},
		{"a frame with hex and values", `{"frames":[{"hex":"00"},{"hex":"00","values":{}}]}`, "frames.1:[Give exactly one of"},
		{"invalid hex", `{"frames":[{"hex":"0g"}]}`, "frames.0:[encoding/hex"},
		{"invalid base64", `{"frames":[{"base64":"*"}]}`, "frames.0:[illegal base64"},
		{"an invalid port", `{"frames":[{"hex":"00","fPort":256}]}`, "frames.0.fPort:[The fPort must be a number from 0 to 255.]"},
		{"an invalid time", `{"frames":[{"hex":"00","time":"now"}]}`, "frames.0.time:[The time must be a time"},
		{"an invalid query", `{"frames":[{"body":{},"query":"%zz"}]}`, "frames.0.query:[invalid URL escape"},
		{"frames and last", `{"frames":[{"hex":"00"}],"last":1,"device_id":"d"}`, "last:[Give frames or last, not both.]"},
		{"last without a device", `{"last":1}`, "device_id:[The device id field is required with last.]"},
		{"a last above the limit", `{"last":101,"device_id":"d"}`, "last:[The last must be between 1 and 100.]"},
		{"too many frames", `{"frames":[` + strings.Repeat(`{"hex":"00"},`, 100) + `{"hex":"00"}]}`, "frames:[There may be at most 100 frames.]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ParseTry([]byte(tc.body))
			if err == nil {
				t.Fatal("no error")
			}
			answertest.Contains(t, "the error", fmt.Sprint(err, relay.FieldsOf(err)), tc.want)
		})
	}
}

func TestTheFramesOfABodyAreTried(t *testing.T) {
	for name, tc := range map[string]struct{ frame, want string }{
		"a JSON value":          {`{"body":{"id":"a","t":5},"path":"generic"}`, "a generic t=5"},
		"JSON in a string":      {`{"body":"{\"id\":\"a\",\"t\":5}","path":"generic"}`, "a generic t=5"},
		"a form":                {`{"body":"device=1A2B&data=05&time=1700000000&seqNumber=1","content_type":"application/x-www-form-urlencoded"}`, "1A2B sigfox "},
		"an event without data": {`{"body":{"deviceInfo":{"devEui":"70b3d57ed0001234"},"devAddr":"01a2b3c4"},"query":"event=join"}`, "70b3d57ed0001234 chirpstack-v4 "},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ParseTry([]byte(`{"codec":"json","frames":[` + tc.frame + `]}`))
			relaytest.NoError(t, err)
			answer, err := TryOffline(t.Context(), catalogtest.Compile, r, time.Now())
			relaytest.NoError(t, err)
			f := answer.Data[0]
			got := f.Identifier + " " + f.Sender + " "
			for _, v := range f.Values {
				got += fmt.Sprint(v.Key, "=", *v.Value)
			}
			relaytest.Equal(t, "the values", got, tc.want)
		})
	}
}

// FuzzParseTry checks that an accepted request can be tried, or is refused with a field.
func FuzzParseTry(f *testing.F) {
	for _, s := range []string{
		`{"codec":"json","frames":[{"values":{"a":1}}]}`, `{"codec":"expr","source":"a = 1.0","frames":[{"hex":"00","fPort":1}]}`,
		`{"codec":"cayenne_lpp","frames":[{"base64":"A2cBEA=="},{"body":"x"}],"sensors":[{"key":"a","sensor_type_id":"b"}]}`, `{"last":3,"device_id":"d"}`, `[]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ParseTry(body)
		if err != nil || r.Codec == catalog.JavaScript || r.Codec == catalog.Expr {
			return
		}
		answer, err := TryOffline(t.Context(), catalogtest.Compile, r, time.Unix(1_700_000_000, 0))
		if err != nil && relay.KindOf(err) != relay.KindInvalid {
			t.Fatalf("error = %v, want KindInvalid", err)
		}
		if _, err := json.Marshal(answer); err != nil {
			t.Fatal(err)
		}
	})
}

// accountList is a store with three accounts.
type accountList struct{ noAccounts }

func (accountList) Accounts(context.Context) ([]account.Account, error) {
	return []account.Account{{ID: 1}, {ID: 2}, {ID: 3}}, nil
}

func TestTheOnlyAccountOfARecordIsFound(t *testing.T) {
	for _, tc := range []struct {
		owners []relay.AccountID
		want   relay.AccountID
		kind   relay.Kind
	}{
		{[]relay.AccountID{2}, 2, 0},
		{nil, 0, relay.KindNotFound},
		{[]relay.AccountID{1, 3}, 0, relay.KindInvalid},
	} {
		owner, _, err := findOwned(t.Context(), accountList{}, 0, func(acct relay.AccountID) (string, error) {
			if slices.Contains(tc.owners, acct) {
				return "record", nil
			}
			return "", relay.Errorf(relay.KindNotFound, "record")
		})
		if owner != tc.want && tc.kind == 0 || relay.KindOf(err) != tc.kind {
			t.Errorf("owners %v: owner = %d, error = %v, want %d and the kind %v", tc.owners, owner, err, tc.want, tc.kind)
		}
	}
}
