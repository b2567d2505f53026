package uplink

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/netserver/netservertest"
	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

// signedAt is the time of all signatures.
func signedAt() time.Time { return time.Date(2021, 4, 7, 8, 49, 52, 0, time.UTC) }

// disruptiveToken returns the token of Disruptive Technologies for a body.
func disruptiveToken(body, secret string, expires time.Time) string {
	sum := sha1.Sum([]byte(body))
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	signed := part(`{"alg":"HS256","typ":"JWT"}`) + "." +
		part(fmt.Sprintf(`{"checksum":"%x","exp":%d,"iat":%d,"jti":"x"}`, sum, expires.Unix(), expires.Add(-time.Hour).Unix()))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// kpnToken returns the token of KPN Things for a body.
func kpnToken(body, secret string) string {
	sum := sha256.Sum256([]byte(body + secret))
	return hex.EncodeToString(sum[:])
}

func TestSignedPostsNeedNoToken(t *testing.T) {
	const unknown = `401 {"message":"Unauthenticated."}`
	dt := `{"event":{"eventId":"e1","targetName":"projects/p/devices/d","eventType":"touch","data":{"touch":{"updateTime":"2021-04-07T08:49:50Z"}}},"labels":{}}`
	senml := `[{"bn":"urn:dev:DEVEUI:0059AC0000000000:","bt":1.6177853e9,"n":"payload","vs":"1b"}]`
	expiry := signedAt().Add(time.Hour)
	query := strings.ReplaceAll(netservertest.ThingParkQuery, "+", "%2B")
	signed := query + "&Token=" + netservertest.ThingParkToken
	cases := []struct {
		name, target, body string
		headers            []string
		want               string
	}{
		{"ThingPark's Token", "/webhooks/lorawan/hq?" + signed, netservertest.ThingParkBody, nil, "200 "},
		{"ThingPark's Token on another path, with a decoder", "/webhooks/sensor-vendor/below/hq?decoder_id=d1&" + signed, netservertest.ThingParkBody, nil, "200 "},
		{"ThingPark's Token for another payload", "/webhooks/lorawan/hq?" + signed, strings.Replace(netservertest.ThingParkBody, "032c", "032d", 1), nil, unknown},
		{"ThingPark without a Token", "/webhooks/lorawan/hq?" + query, netservertest.ThingParkBody, nil, unknown},
		{"ThingPark's Token with the body of another sender", "/webhooks/lorawan/hq?" + signed, `{"deviceInfo":{"devEui":"0101010101010101"},"data":"qg==","CustomerID":"100002167","FCntUp":18,"DevEUI":"20635F0108000496","FPort":17}`, nil, unknown},
		{"ThingPark's Token with invalid JSON", "/webhooks/lorawan/hq?" + signed, `{"DevEUI_uplink":`, nil, unknown},
		{"Disruptive Technologies' signature", "/webhooks/sensor-vendor/hq", dt, []string{"X-Dt-Signature", disruptiveToken(dt, netservertest.ThingParkKey, expiry)}, "200 "},
		{"Disruptive Technologies' signature on another webhook", "/webhooks/lpwan/hq/", dt, []string{"X-Dt-Signature", disruptiveToken(dt, netservertest.ThingParkKey, expiry)}, "200 "},
		{"Disruptive Technologies' signature for another body", "/webhooks/sensor-vendor/hq", dt + " ", []string{"X-Dt-Signature", disruptiveToken(dt, netservertest.ThingParkKey, expiry)}, unknown},
		{"Disruptive Technologies' signature with another secret", "/webhooks/sensor-vendor/hq", dt, []string{"X-Dt-Signature", disruptiveToken(dt, "guess", expiry)}, unknown},
		{"Disruptive Technologies' signature from a day ago", "/webhooks/sensor-vendor/hq", dt, []string{"X-Dt-Signature", disruptiveToken(dt, netservertest.ThingParkKey, signedAt().Add(-24*time.Hour))}, unknown},
		{"Disruptive Technologies without a signature", "/webhooks/sensor-vendor/hq", dt, nil, unknown},
		{"KPN's signature", "/webhooks/lpwan/hq", senml, []string{"Things-Message-Token", kpnToken(senml, netservertest.ThingParkKey)}, "200 "},
		{"KPN's wrong signature", "/webhooks/lpwan/hq", senml, []string{"Things-Message-Token", kpnToken(senml, "guess")}, unknown},
		{"a sender that cannot sign", "/webhooks/lorawan/hq", chirpstack(t), nil, unknown},
		{"an unknown source", "/webhooks/lpwan/hr", senml, []string{"Things-Message-Token", kpnToken(senml, netservertest.ThingParkKey)}, unknown},
		{"a source of a token without a secret", "/webhooks/lpwan/bare", senml, []string{"Things-Message-Token", kpnToken(senml, "")}, unknown},
		{"a device of the generic webhook with the name of a source", "/webhooks/generic/hq", senml, []string{"Things-Message-Token", kpnToken(senml, netservertest.ThingParkKey)}, unknown},
		{"a token and a signature", "/webhooks/lpwan", senml, []string{"Things-Message-Token", kpnToken(senml, netservertest.ThingParkKey), "X-Auth-Token", "signing"}, "200 "},
		{"a token without a signature", "/webhooks/lorawan", netservertest.ThingParkBody, []string{"X-Auth-Token", "signing"}, "200 "},
		{"a token and a wrong signature", "/webhooks/lpwan", senml, []string{"Things-Message-Token", kpnToken(senml, "guess"), "X-Auth-Token", "signing"}, unknown},
	}
	f := newFlow(t)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			status, body, _ := f.call("POST", tc.target, "", tc.body, tc.headers...)
			if got := fmt.Sprint(status, " ", body); got != tc.want {
				t.Errorf("answer = %s, want %s", got, tc.want)
			}
		})
	}
	if status := f.intake.Status(); status.Accepted != 7 {
		t.Errorf("accepted posts = %d, want 7", status.Accepted)
	}
}

func TestAnswersToEachSender(t *testing.T) {
	const (
		frame    = "device=1A2345&data=0102&time=1476980426&seqNumber=1492"
		helium   = `{"dev_eui":"A84041D2C5182F01","app_eui":"A840410000000100","reported_at":1771050612482,"payload":"AQ==","port":2,"fcnt":1}`
		everynet = `{"type":"downlink_request","meta":{"device":"a84041d2c5182f01"},"params":{}}`
		ubibot   = `{"channel_id":"1","feeds":[]}`
		formType = "application/x-www-form-urlencoded"
	)
	cases := []struct {
		name, method, target, kind, body, want string
	}{
		{"Sigfox with GET", "GET", "/webhooks/lpwan?" + frame, "", "", "200 "},
		{"Sigfox with GET and ack", "GET", "/webhooks/lpwan?" + frame + "&ack=true", "", "", "204 "},
		{"Sigfox with a form", "POST", "/webhooks/lpwan", formType, frame, "200 "},
		{"Sigfox with a form and ack", "POST", "/webhooks/community", formType, frame + "&ack=true", "204 "},
		{"Sigfox with a form and ack false", "POST", "/webhooks/lpwan", formType, frame + "&ack=false", "200 "},
		{"Sigfox with a form as text/plain", "POST", "/webhooks/lpwan", "text/plain", frame + "&ack=true", "204 "},
		{"text that is not a form", "POST", "/webhooks/lpwan", "text/plain", "device 1A2345", `422 {"message":"Invalid JSON."}`},
		{"Sigfox with PUT", "PUT", "/webhooks/lpwan", "application/json", `{"device":"1A2345","data":"0102","seqNumber":"7","time":"1476980426","ack":"true"}`, "204 "},
		{"Sigfox with JSON and a boolean ack", "POST", "/webhooks/lpwan", "application/json", `{"device":"1A2345","data":"0102","seqNumber":8,"time":1476980426,"ack":true}`, "204 "},
		{"Sigfox's error without a sequence number", "POST", "/webhooks/lpwan", "application/json", `{"device":"1A2345","time":1476980426,"severity":"ERROR","info":"low voltage"}`, "200 "},
		{"Sigfox with ack at the generic webhook", "POST", "/webhooks/generic", formType, frame + "&ack=true", "204 "},
		{"Sigfox at the generic webhook", "POST", "/webhooks/generic", formType, frame, `200 {"data":[],"notes":["repeats n1-u1, dropped"]}`},
		{"Helium", "POST", "/webhooks/community", "application/json", helium, "200 "},
		{"Helium at the generic webhook", "POST", "/webhooks/generic", "application/json", helium, "200 "},
		{"Everynet requesting a downlink", "POST", "/webhooks/lorawan", "application/json", everynet, "200 "},
		{"Everynet at the generic webhook", "POST", "/webhooks/generic", "application/json", everynet, "200 "},
		{"UbiBot at the generic webhook", "POST", "/webhooks/generic", "application/json", ubibot, "200 SUCCESS"},
		{"ThingPark in XML", "POST", "/webhooks/lorawan", "application/xml", `<DevEUI_uplink><DevEUI>A84041D2C5182F01</DevEUI></DevEUI_uplink>`, "200 "},
		{"a query of an unknown sender", "GET", "/webhooks/lorawan?rssi=-90", "", "", `422 {"message":"Invalid JSON."}`},
		{"Sigfox's query without a sequence number at another webhook", "GET", "/webhooks/lorawan?device=1A2345", "", "", `422 {"message":"Invalid JSON."}`},
		{"Sigfox's query without a sequence number", "GET", "/webhooks/lpwan?device=1A2345&time=1476980426&info=x", "", "", "200 "},
		{"the generic webhook with GET", "GET", "/webhooks/generic?" + frame, "", "", `404 {"message":"Not found."}`},
	}
	f := newFlow(t)
	f.run()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			status, body, header := f.call(tc.method, tc.target, "hook-1", tc.body, "Content-Type", tc.kind)
			if got := fmt.Sprint(status, " ", body); got != tc.want {
				t.Errorf("answer = %s, want %s", got, tc.want)
			}
			if status == 204 && header.Get("Content-Length") != "" && header.Get("Content-Length") != "0" {
				t.Errorf("header of an answer with status 204 = %v, want no body", header)
			}
		})
	}
}

func TestOPTIONSNeedsNoToken(t *testing.T) {
	f := newFlow(t)
	for target, want := range map[string]string{
		"/webhooks/lorawan": "GET, POST, PUT, OPTIONS", "/webhooks/lorawan/uplink/a1": "GET, POST, PUT, OPTIONS",
		"/webhooks/sensor-vendor": "GET, POST, PUT, OPTIONS", "/webhooks/generic/x": "POST, OPTIONS",
	} {
		status, body, header := f.call("OPTIONS", target, "", "")
		relaytest.Equal(t, target+": the status", status, 204)
		relaytest.Equal(t, target+": the answer", body, "")
		relaytest.Equal(t, target+": the methods", header.Get("Allow"), want)
	}
	if status, _, _ := f.call("OPTIONS", "/webhooks/other", "", ""); status != 401 {
		t.Errorf("status for an unknown webhook = %d, want 401", status)
	}
}

func TestRefusedProtobufIsJournalled(t *testing.T) {
	f := newFlow(t)
	f.run()
	if status, _ := f.post("/webhooks/lorawan?event=up", "hook-1", "\x0a\x02hi", "Content-Type", "application/octet-stream"); status != 415 {
		t.Fatalf("status = %d, want 415", status)
	}
	f.waitProcessed()
	got := f.events(event.Quarantined)
	if len(got) != 1 {
		t.Fatalf("quarantined events = %d, want 1", len(got))
	}
	relaytest.Equal(t, "the sender", got[0].Source, "protobuf")
	relaytest.Equal(t, "the account", got[0].Account, 1)
	answertest.Contains(t, "the reason", got[0].Reason, "set the sender's encoding to JSON")
	relaytest.Equal(t, "the bytes", string(got[0].Raw), "\x0a\x02hi")
}

// FuzzSource checks that a source is one path segment below a sender's webhook.
func FuzzSource(f *testing.F) {
	for _, path := range []string{"/webhooks/lorawan", "/webhooks/lorawan/hq", "/webhooks/lpwan/a/b/", "/webhooks/generic/x", "", "/", "//", "/WEBHOOKS/LoRaWAN//"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got := sourceIn(path)
		answertest.NotContains(t, "the source", got, "/")
		if got != "" && !strings.Contains(path, "/"+got) {
			t.Fatalf("source = %q, want a segment of %q", got, path)
		}
		if _, err := url.PathUnescape(deviceOf(path, nil)); err == nil && got != "" && deviceOf(path, nil) != "" {
			t.Fatalf("%q has a source and a device", path)
		}
	})
}
