package netserver

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/penstock/penstock/decoders/netserver/netservertest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestThingParkTokens(t *testing.T) {
	signedAt := time.Date(2021, 4, 7, 8, 49, 51, 0, time.UTC)
	signed := netservertest.ThingParkQuery + "&Token=" + netservertest.ThingParkToken
	for _, c := range []struct {
		name, query, body, key string
		now                    time.Time
		want                   error
	}{
		{"the published example", signed, netservertest.ThingParkBody, netservertest.ThingParkKey, signedAt, nil},
		{"with a percent-encoded time", strings.ReplaceAll(strings.ReplaceAll(signed, "+", "%2B"), "00:00", "00%3A00"), netservertest.ThingParkBody, netservertest.ThingParkKey, signedAt, nil},
		{"in upper-case digits", netservertest.ThingParkQuery + "&Token=" + strings.ToUpper(netservertest.ThingParkToken), netservertest.ThingParkBody, netservertest.ThingParkKey, signedAt, nil},
		{"with a query parameter of the receiver", "decoder_id=7&" + signed, netservertest.ThingParkBody, netservertest.ThingParkKey, signedAt, nil},
		{"with numbers in strings", signed, strings.NewReplacer(`:18`, `:"18"`, `:17`, `:"17"`).Replace(netservertest.ThingParkBody), netservertest.ThingParkKey, signedAt, nil},
		{"without a token", netservertest.ThingParkQuery, netservertest.ThingParkBody, netservertest.ThingParkKey, signedAt, ErrUnsigned},
		{"with an empty token", netservertest.ThingParkQuery + "&Token=", netservertest.ThingParkBody, netservertest.ThingParkKey, signedAt, ErrUnsigned},
		{"with another key", signed, netservertest.ThingParkBody, "00" + netservertest.ThingParkKey[2:], signedAt, ErrSignature},
		{"without a key", signed, netservertest.ThingParkBody, "", signedAt, ErrSignature},
		{"with another payload", signed, strings.Replace(netservertest.ThingParkBody, "032c", "042c", 1), netservertest.ThingParkKey, signedAt, ErrSignature},
		{"with a second payload", signed, strings.TrimSuffix(netservertest.ThingParkBody, "}") + `,"payload_hex":"00"}`, netservertest.ThingParkKey, signedAt, ErrSignature},
		{"with another device in a nested object", signed, strings.TrimSuffix(netservertest.ThingParkBody, "}") + `,"data":{"DevEUI":"20635F0108000497"}}`, netservertest.ThingParkKey, signedAt, ErrSignature},
		{"with another counter", signed, strings.Replace(netservertest.ThingParkBody, ":18", ":19", 1), netservertest.ThingParkKey, signedAt, ErrSignature},
		{"with the query in another order", swapParameters(netservertest.ThingParkQuery) + "&Token=" + netservertest.ThingParkToken, netservertest.ThingParkBody, netservertest.ThingParkKey, signedAt, ErrSignature},
		{"with another time", strings.Replace(signed, "08:49", "08:50", 1), netservertest.ThingParkBody, netservertest.ThingParkKey, signedAt, ErrSignature},
		{"with half a token", signed[:len(signed)-2], netservertest.ThingParkBody, netservertest.ThingParkKey, signedAt, ErrSignature},
		{"six minutes late", signed, netservertest.ThingParkBody, netservertest.ThingParkKey, signedAt.Add(6 * time.Minute), ErrStale},
		{"six minutes early", signed, netservertest.ThingParkBody, netservertest.ThingParkKey, signedAt.Add(-6 * time.Minute), ErrStale},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := VerifyThingPark(c.query, []byte(c.body), c.key, c.now); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// swapParameters swaps the first two parameters of a query.
func swapParameters(query string) string {
	parts := strings.Split(query, "&")
	parts[0], parts[1] = parts[1], parts[0]
	return strings.Join(parts, "&")
}

func TestThingParkTokensOfOtherDocuments(t *testing.T) {
	const query = "LrnDevEui=A84041D2C5182F01&LrnFPort=2&LrnInfos=TWA_100000001.999.AS-1-12345678&AS_ID=TWA_100000001.999&Time=2026-02-14T07:30:14.000+01:00"
	now := time.Date(2026, 2, 14, 6, 30, 20, 0, time.UTC)
	for _, c := range []struct{ name, file, token string }{
		{"an uplink in XML", "thingpark-xml", "0cee2427133e674d54a9011cce992820e25c9c1ef422af0730408cc51024c3c6"},
		{"a downlink that was sent", "thingpark-downlink-sent", "b271c19240905a2b1d5663e5bd65cd2c27ce770e4328d32764a8cb1027834620"},
		{"a location with the device in lower case", "thingpark-location", "152982616f9908a879222668941951de5bbcb0a9bb872141ccc7c260fd8c8b93"},
		{"a notification", "thingpark-join", "87fe4d00703911d4bcadf1c107f71c5f6ee9430b815f2bea8da8503fd3456d9a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := txtar.ParseFile("testdata/" + c.file + ".txtar")
			relaytest.NoError(t, err)
			body := []byte(section(a, "body"))
			if err := VerifyThingPark(query+"&Token="+c.token, body, "0a1b2c3d4e5f60718293a4b5c6d7e8f9", now); err != nil {
				t.Error(err)
			}
		})
	}
	if err := VerifyThingPark(query+"&Token=00", []byte("<!DOCTYPE a><b/>"), "00", now); err == nil || errors.Is(err, ErrSignature) {
		t.Errorf("a body that cannot be read: got %v, want another error than ErrSignature", err)
	}
}

// The tokens were signed with disruptiveSecret by another implementation of HMAC.
const (
	disruptiveBody   = `{"event":{"eventId":"c7fa4e34fet12rl64000","eventType":"touch"}}`
	disruptiveSecret = "quay-secret"
	header256        = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
	claims           = "eyJjaGVja3N1bSI6IjcxOTY5YWM1NDMxY2MxMjA2MWE3ZjU0YzdkMTg2NTcwMmE4Nzg1NDQiLCJleHAiOjE3NzEwNTQyMTIsImlhdCI6MTc3MTA1MDYxMiwianRpIjoiYzdmYTRlNzdnZjg3ZWlmNjAwMDAifQ."
	validToken       = header256 + claims + "pZaJvTRlmwAQM02zehYQvv8-FotXcj2aRSbblOAYf_U"
	sha256Token      = header256 + "eyJjaGVja3N1bV9zaGEyNTYiOiJlNzY3MDE1ZmQ5MTQ1YTFhNzczNDM1ODRkNmZlYTY1YjZlOGY1OTUzMTJhOGUyYTQ3ZWNkNDc2Zjk1YWFlMjZhIiwiZXhwIjoxNzcxMDU0MjEyLCJpYXQiOjE3NzEwNTA2MTJ9.Tilx9w-8sJzFm3P2EKug-JQCW6sg8pxwd5OuVAaIitk"
	noneToken        = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + claims
	hs512Token       = "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9." + claims + "mY6QCp4THiqX8eaYtc5zDuoM6uUOi4WR8uhz97DMybo"
	noExpiryToken    = header256 + "eyJjaGVja3N1bSI6IjcxOTY5YWM1NDMxY2MxMjA2MWE3ZjU0YzdkMTg2NTcwMmE4Nzg1NDQiLCJpYXQiOjE3NzEwNTA2MTJ9.5_V7lKIHxsVnczto0EccUWgiamPqSx600mu6IyUd60M"
	noChecksumToken  = header256 + "eyJleHAiOjE3NzEwNTQyMTIsImlhdCI6MTc3MTA1MDYxMn0.Nvp0VvPreByTtU5pTNhN9HEkOoHvL7kU72OLEYMFSuU"
)

func TestDisruptiveTechnologiesTokens(t *testing.T) {
	issued := time.Unix(1771050612, 0)
	for _, c := range []struct {
		name, token, body, secret string
		now                       time.Time
		want                      error
	}{
		{"a token issued a second ago", validToken, disruptiveBody, disruptiveSecret, issued.Add(time.Second), nil},
		{"a token issued by a clock that is four minutes fast", validToken, disruptiveBody, disruptiveSecret, issued.Add(-4 * time.Minute), nil},
		{"a token with the newer checksum", sha256Token, disruptiveBody, disruptiveSecret, issued, nil},
		{"no token", "", disruptiveBody, disruptiveSecret, issued, ErrUnsigned},
		{"a scheme without a token", "Bearer", disruptiveBody, disruptiveSecret, issued, ErrSignature},
		{"another body", validToken, disruptiveBody + " ", disruptiveSecret, issued, ErrSignature},
		{"another body under the newer checksum", sha256Token, disruptiveBody + " ", disruptiveSecret, issued, ErrSignature},
		{"another secret", validToken, disruptiveBody, "quay", issued, ErrSignature},
		{"no secret", validToken, disruptiveBody, "", issued, ErrSignature},
		{"a token with the algorithm none", noneToken, disruptiveBody, disruptiveSecret, issued, ErrSignature},
		{"a token with another algorithm", hs512Token, disruptiveBody, disruptiveSecret, issued, ErrSignature},
		{"a token without an expiry", noExpiryToken, disruptiveBody, disruptiveSecret, issued, ErrStale},
		{"a token without a checksum", noChecksumToken, disruptiveBody, disruptiveSecret, issued, ErrSignature},
		{"a token with a fourth part", validToken + ".x", disruptiveBody, disruptiveSecret, issued, ErrSignature},
		{"an expired token", validToken, disruptiveBody, disruptiveSecret, issued.Add(2 * time.Hour), ErrStale},
		{"a token issued ten minutes in the future", validToken, disruptiveBody, disruptiveSecret, issued.Add(-10 * time.Minute), ErrStale},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := VerifyDisruptive(c.token, []byte(c.body), c.secret, c.now); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestKPNTokens(t *testing.T) {
	const body = `[{"bn":"urn:dev:DEVEUI:A84041D2C5182F01:","n":"payload","vs":"016700e1"}]`
	const token = "d0e5a509d4606d54958c97723658de4f378fc5303d825a6bef6de9b055f747c2"
	for _, c := range []struct {
		name, token, body, secret string
		want                      error
	}{
		{"a valid token", token, body, "quay-secret", nil},
		{"a valid token in upper case", strings.ToUpper(token), body, "quay-secret", nil},
		{"no token", "", body, "quay-secret", ErrUnsigned},
		{"a token that is not hex", "quay-secret", body, "quay-secret", ErrSignature},
		{"half a token", token[:32], body, "quay-secret", ErrSignature},
		{"another body", token, body + "\n", "quay-secret", ErrSignature},
		{"another secret", token, body, "quay-secret2", ErrSignature},
		{"the hash of the body alone", "fe648a83bf9a532277f0e604013f56d004c8e830bca42471c69620cf92da7239", body, "", ErrSignature},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := VerifyKPN(c.token, []byte(c.body), c.secret); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// FuzzVerify checks that no token, query or body makes verification panic or passes without
// the secret.
func FuzzVerify(f *testing.F) {
	f.Add(netservertest.ThingParkQuery+"&Token="+netservertest.ThingParkToken, []byte(netservertest.ThingParkBody))
	f.Add(validToken, []byte(disruptiveBody))
	f.Add("Token=%zz&Time=%", []byte("<a><b></a>"))
	f.Fuzz(func(t *testing.T, token string, body []byte) {
		now := time.Unix(1771050612, 0)
		for name, err := range map[string]error{
			"ThingPark":  VerifyThingPark(token, body, "unguessable", now),
			"Disruptive": VerifyDisruptive(token, body, "unguessable", now),
			"KPN":        VerifyKPN(token, body, "unguessable"),
			"a query":    VerifyThingPark("Token="+url.QueryEscape(token), body, "unguessable", now),
		} {
			if err == nil {
				t.Fatalf("%s accepts %q", name, token)
			}
		}
	})
}
