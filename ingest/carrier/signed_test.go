package carrier

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/relaytest"
)

// signingTime is the time of the signatures in this file. Unless a case names another origin, they
// were computed with Python's hmac.
func signingTime() time.Time { return time.Unix(1782903600, 0) }

type signature struct {
	verify  func(*SignedRequest, string) error
	secret  string
	method  string
	url     string
	kind    string
	body    string
	headers []string // name, value, …
	now     time.Time
	want    error
}

func (s signature) check() error {
	h := http.Header{}
	for i := 0; i+1 < len(s.headers); i += 2 {
		h.Set(s.headers[i], s.headers[i+1])
	}
	now := s.now
	if now.IsZero() {
		now = signingTime()
	}
	return s.verify(&SignedRequest{Method: s.method, URL: s.url, ContentType: s.kind, Header: h.Get, Body: []byte(s.body), Now: now}, s.secret)
}

const (
	formType = "application/x-www-form-urlencoded; charset=utf-8"
	jsonType = "application/json"

	twilioForm = "Digits=1234&To=%2B18005551212&From=%2B14158675309&Caller=%2B14158675309&CallSid=CA1234567890ABCDE"
	vonageForm = "concat=true&api-key=abcd1234&msisdn=447700900001&to=447700900000&messageId=0A0000000123ABCD1&text=Hello+%26+a%3Db&type=text&keyword=HELLO" +
		"&message-timestamp=2020-01-01T12%3A00%3A00.000%2B00%3A00&timestamp=1782903600&nonce=aaaaaaaa-bbbb-cccc-dddd-0123456789ab&concat-ref=3&sig="
	vonageSecret = "Y6dI3wtDP8myVH5tnDoIaTxEvAJhgDVCczBa1mHniEqsdlnnebg"
	vonageBody   = `{"to":"447700900000","from":"447700900001","text":"hi"}`
	jwtHead      = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
	nonce        = "05429567804466091622"
	goodJWT      = jwtHead + "eyJpYXQiOjE3ODI5MDM2MDAsImp0aSI6IjEiLCJpc3MiOiJWb25hZ2UiLCJwYXlsb2FkX2hhc2giOiJlNDVlNDZlNDQxZDRkNGNhZmEwMjk4Mjg3OWIwYmIzM2FlY2EwNTU2MWVlY2Y1ZWVjZDZlMmI0ZjgzYWUzMWFhIiwiYXBpX2tleSI6ImEifQ.009GfK7SeJ7ZsEvqhWn8fi5MiEUUHkGmXE5H50FEfUo"
	sinchBody    = `{"app_id":"","accepted_time":"2021-10-18T17:49:13.813615Z","project_id":"e2df3a34-a71b-4448-9db5-a8d2baad28e4","contact_create_notification":{"contact":{"id":"01FJA8B466Y0R2GNXD78MD9SM1","channel_identities":[{"channel":"SMS","identity":"48123456789","app_id":""}],"display_name":"New Test Contact","email":"new.contact@email.com","external_id":"","metadata":"","language":"EN_US"}},"message_metadata":""}`
)

func vonageJSON(sig string) string {
	return `{"api-key":"abcd1234","msisdn":447700900001,"to":"447700900000","messageId":"0A0000000123ABCD1","text":"Hello & a=b","type":"text","keyword":"HELLO","message-timestamp":"2020-01-01T12:00:00.000+00:00","timestamp":"1782903600","nonce":"aaaaaaaa-bbbb-cccc-dddd-0123456789ab","concat":true,"concat-ref":"3","sig":"` + sig + `"}`
}

func signatures() map[string]signature {
	const twilioURL = "https://mycompany.com/myapp.php?foo=1&bar=2"
	twilio := func(url, body, sum string, headers ...string) signature {
		s := signature{verify: verifyTwilio, secret: "12345", method: "POST", url: url, body: body, headers: append(headers, "X-Twilio-Signature", sum)}
		if body != "" {
			s.kind = formType
		}
		return s
	}
	vonage := func(url, kind, body string, headers ...string) signature {
		return signature{verify: verifyVonage, secret: vonageSecret, method: "POST", url: url, kind: kind, body: body, headers: headers}
	}
	jwt := func(url, kind, body, token string) signature {
		return signature{verify: verifyVonage, secret: "secret", method: "POST", url: url, kind: kind, body: body, headers: []string{"Authorization", "Bearer " + token}}
	}
	plivo := func(url, body string, headers ...string) signature {
		s := signature{verify: newNonces().verifyPlivo, secret: "tok", method: "POST", url: url, body: body, headers: headers}
		if body != "" {
			s.kind = formType
		}
		return s
	}
	sinch := func(body string, headers ...string) signature {
		return signature{verify: verifySinch, secret: "foo_secret1234", method: "POST", kind: jsonType, body: body, headers: headers, now: time.Unix(1634579400, 0)}
	}
	android := func(body, sum, timestamp string) signature {
		return signature{verify: verifyAndroid, secret: "key", method: "POST", kind: jsonType, body: body, headers: []string{"X-Signature", sum, "X-Timestamp", timestamp}}
	}
	changed := func(s signature, change func(*signature), want error) signature { change(&s); s.want = want; return s }
	const (
		v, vn, v3, v3n = "X-Plivo-Signature-V2", "X-Plivo-Signature-V2-Nonce", "X-Plivo-Signature-V3", "X-Plivo-Signature-V3-Nonce"
		sx             = "X-Sinch-Webhook-Signature"
		androidSum     = "a1e1426748cd3a04ad020be3360667a0b497be07547aa3385e5e507cb67a1be8"
		androidBody    = `{"event":"sms:received"}`
		getJWT         = jwtHead + "eyJpYXQiOjE3ODI5MDM2MDAsInBheWxvYWRfaGFzaCI6ImM2NjQ4Mjc5ZGVjYTE4NDBmYzhjZTNmMjcxNzdlNjY3NjRiZGEwNTI2ZGU3MDMzYTRjMmRmOWQ4MGY5NGYzMTEifQ.klweuOkbj27zL6-crOFSCCJ0HOOlqieHdnXrfYa4hR4"
	)
	sinchGood := sinch(sinchBody, sx, "6bpJoRmFoXVjfJIVglMoJzYXxnoxRujzR4k2GOXewOE=", sx+"-Nonce", "01FJA8B4A7BM43YGWSG9GBV067", sx+"-Timestamp", "1634579353")
	return map[string]signature{
		"Twilio, an example of its libraries":       twilio(twilioURL, twilioForm, "RSOYDt4T1cUTdK1PDd93/VVr8B8="),
		"Twilio, signed with the port":              twilio(twilioURL, twilioForm, "kvajT1Ptam85bY51eRf/AJRuM3w="),
		"Twilio, signed without our port":           twilio("https://mycompany.com:8443/myapp.php?foo=1&bar=2", twilioForm, "RSOYDt4T1cUTdK1PDd93/VVr8B8="),
		"Twilio, signed with user and password":     twilio(twilioURL, twilioForm, "jMk4ozfGcONDREeyFKPqxJBX1qE=", "Authorization", "Basic dTpw"),
		"Twilio, a GET":                             twilio(twilioURL, "", "zYQTYrRWXE7LtzbG4PfP7/bkkGo="),
		"Twilio, repeated names and values":         twilio("https://mycompany.com/dup", "A=2&B=1&A=1&A=2", "n9yDUXJ1wICsuEAmdnQ8efKA75Y="),
		"Twilio, JSON with bodySHA256":              changed(twilio("https://mycompany.com/myapp.php?bodySHA256=015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862", `{"a":1}`, "+kSuX/0ZJYA1+JmgZwzpaeDUJPg="), func(s *signature) { s.kind = jsonType }, nil),
		"Twilio, JSON with another bodySHA256":      changed(twilio("https://mycompany.com/myapp.php?bodySHA256=015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862", `{"a":2}`, "+kSuX/0ZJYA1+JmgZwzpaeDUJPg="), func(s *signature) { s.kind = jsonType }, errSignature),
		"Twilio, an additional field":               changed(twilio(twilioURL, twilioForm+"&x=1", "RSOYDt4T1cUTdK1PDd93/VVr8B8="), func(*signature) {}, errSignature),
		"Twilio, another path":                      changed(twilio("https://mycompany.com/other?foo=1&bar=2", twilioForm, "RSOYDt4T1cUTdK1PDd93/VVr8B8="), func(*signature) {}, errSignature),
		"Twilio, another scheme":                    changed(twilio("http://mycompany.com/myapp.php?foo=1&bar=2", twilioForm, "RSOYDt4T1cUTdK1PDd93/VVr8B8="), func(*signature) {}, errSignature),
		"Twilio, another secret":                    changed(twilio(twilioURL, twilioForm, "RSOYDt4T1cUTdK1PDd93/VVr8B8="), func(s *signature) { s.secret = "1234" }, errSignature),
		"Twilio, no signature":                      changed(twilio(twilioURL, twilioForm, ""), func(*signature) {}, httpd.ErrUnsigned),
		"Twilio, invalid base64":                    changed(twilio(twilioURL, twilioForm, "!"), func(*signature) {}, errSignature),
		"Twilio, an invalid form":                   changed(twilio(twilioURL, "a=%zz", "RSOYDt4T1cUTdK1PDd93/VVr8B8="), func(*signature) {}, errUnread),
		"Twilio, a body without a content type":     changed(twilio(twilioURL, twilioForm, "zYQTYrRWXE7LtzbG4PfP7/bkkGo="), func(s *signature) { s.kind = "" }, errSignature),
		"Vonage, sig by MD5 and the secret":         vonage("https://h/in", formType, vonageForm+"474740a467c08fd776cca76800afc385"),
		"Vonage, sig by HMAC-MD5":                   vonage("https://h/in", formType, vonageForm+"13F8FC50C425CF67C0C579EEEFDB291E"),
		"Vonage, sig by HMAC-SHA1":                  vonage("https://h/in", formType, vonageForm+"8021A9D81E55D71494EFDFEA721F114E9E03695E"),
		"Vonage, sig by HMAC-SHA256, in JSON":       vonage("https://h/in", jsonType, vonageJSON("672290658D0332B655ABF5F2B0B077ED7A6906BA710C04093E924A9AF99A7C6F")),
		"Vonage, sig by HMAC-SHA512, in the query":  vonage("https://h/in?"+vonageForm+"F9E298C80D863BD0852ECCDB0F46BB480FF548DDAE8FA65F466B3B397C6048007C65A16DD751D1233B2193D35D77F6F3432972E757659D79F38D090717531DEE", "", ""),
		"Vonage, another text":                      changed(vonage("https://h/in", formType, strings.Replace(vonageForm, "Hello", "Hullo", 1)+"474740a467c08fd776cca76800afc385"), func(*signature) {}, errSignature),
		"Vonage, a sig of an unknown length":        changed(vonage("https://h/in", formType, vonageForm+"4747"), func(*signature) {}, errSignature),
		"Vonage, no sig":                            changed(vonage("https://h/in", formType, strings.TrimSuffix(vonageForm, "&sig=")), func(*signature) {}, httpd.ErrUnsigned),
		"Vonage, a sig from three days ago":         changed(vonage("https://h/in", formType, vonageForm+"474740a467c08fd776cca76800afc385"), func(s *signature) { s.now = signingTime().Add(72 * time.Hour) }, errStale),
		"Vonage, a sig repeated after a day":        changed(vonage("https://h/in", formType, vonageForm+"474740a467c08fd776cca76800afc385"), func(s *signature) { s.now = signingTime().Add(24 * time.Hour) }, nil),
		"Vonage, a sig from the future":             changed(vonage("https://h/in", formType, vonageForm+"474740a467c08fd776cca76800afc385"), func(s *signature) { s.now = signingTime().Add(-time.Hour) }, errStale),
		"Vonage, invalid JSON":                      changed(vonage("https://h/in", jsonType, "{"), func(*signature) {}, httpd.ErrUnsigned),
		"Vonage, a token of the Messages API":       jwt("https://h/in", jsonType, vonageBody, goodJWT),
		"Vonage, a token for a GET":                 jwt("https://h/in?msisdn=447700900001&text=hi+%3Cyou%3E+%26+%C3%A9", "", "", getJWT),
		"Vonage, a token for a form":                jwt("https://h/in", formType, "msisdn=447700900001&text=hi+%3Cyou%3E+%26+%C3%A9", getJWT),
		"Vonage, a token for another query":         changed(jwt("https://h/in?msisdn=447700900001&text=ho", "", "", getJWT), func(*signature) {}, errSignature),
		"Vonage, a token for another body":          changed(jwt("https://h/in", jsonType, vonageBody+" ", goodJWT), func(*signature) {}, errSignature),
		"Vonage, a token without a payload hash":    changed(jwt("https://h/in", jsonType, vonageBody, jwtHead+"eyJpYXQiOjE3ODI5MDM2MDB9.nN5nDabQnaKRDq4UuIyRwAX7tcOuFcgJYqI3Eev-t3w"), func(*signature) {}, errSignature),
		"Vonage, a token from two days ago":         changed(jwt("https://h/in", jsonType, vonageBody, jwtHead+"eyJpYXQiOjE3ODI3MjcyMDAsInBheWxvYWRfaGFzaCI6ImU0NWU0NmU0NDFkNGQ0Y2FmYTAyOTgyODc5YjBiYjMzYWVjYTA1NTYxZWVjZjVlZWNkNmUyYjRmODNhZTMxYWEifQ.kqId6_u2lPaR70kFCrqF00tibn5otV55gbvnHIdMct8"), func(*signature) {}, errStale),
		"Vonage, an expired token":                  changed(jwt("https://h/in", jsonType, vonageBody, jwtHead+"eyJpYXQiOjE3ODI5MDAwMDAsImV4cCI6MTc4MjkwMTgwMCwicGF5bG9hZF9oYXNoIjoiZTQ1ZTQ2ZTQ0MWQ0ZDRjYWZhMDI5ODI4NzliMGJiMzNhZWNhMDU1NjFlZWNmNWVlY2Q2ZTJiNGY4M2FlMzFhYSJ9.teq7uGFqONtUFhr8zkK1D31lSvIWBNz-YzBlyKMDcHE"), func(*signature) {}, errStale),
		"Vonage, a token without an algorithm":      changed(jwt("https://h/in", jsonType, vonageBody, "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJpYXQiOjE3ODI5MDM2MDAsInBheWxvYWRfaGFzaCI6ImU0NWU0NmU0NDFkNGQ0Y2FmYTAyOTgyODc5YjBiYjMzYWVjYTA1NTYxZWVjZjVlZWNkNmUyYjRmODNhZTMxYWEifQ._1-M0ZClRI4vA-_wGpUfZpKv-a1PZzx9MwWvMXF620g"), func(*signature) {}, errUnread),
		"Vonage, a token with another secret":       changed(jwt("https://h/in", jsonType, vonageBody, goodJWT), func(s *signature) { s.secret = "secrets" }, errSignature),
		"Plivo, V2":                                 plivo("https://h.example/answer/?x=1", "From=1&Text=a", v, "mMpSDCOGxj+fw/HrbFaIyzNcwTadQ/3hoORxKqZDoVU=", vn, nonce),
		"Plivo, V2 of the main account, of several": plivo("https://h.example/answer/", "", "X-Plivo-Signature-Ma-V2", "AAAA, mMpSDCOGxj+fw/HrbFaIyzNcwTadQ/3hoORxKqZDoVU=", vn, nonce),
		"Plivo, V2 with another nonce":              changed(plivo("https://h.example/answer/", "", v, "mMpSDCOGxj+fw/HrbFaIyzNcwTadQ/3hoORxKqZDoVU=", vn, "1"), func(*signature) {}, errSignature),
		"Plivo, V3":                                 plivo("https://h.example/in", "To=2&Text=a+b&From=1", v3, "A27F5slHZ6oCiuwEAnrF8agCFtiLO5KxYAsKJtorg7U=", v3n, nonce),
		"Plivo, V3 with a query":                    plivo("https://h.example/in?b=x%20y&a=1", "To=2&Text=a+b&From=1", v3, "KaDRpgQdu+lemsa9JN+448bDIO6/GgWk8jku2ooFmdE=", v3n, nonce),
		"Plivo, V3 of a GET":                        plivo("https://h.example/in?To=2&Text=a%20b&From=1", "", v3, "GqIvmwvEx3RxmhB1Q/xEzvvBluYg8bZ06ms1ATl6AcU=", v3n, nonce),
		"Plivo, V3 with another text":               changed(plivo("https://h.example/in", "To=2&Text=a+c&From=1", v3, "A27F5slHZ6oCiuwEAnrF8agCFtiLO5KxYAsKJtorg7U=", v3n, nonce), func(*signature) {}, errSignature),
		"Plivo, a wrong V3 with a valid V2":         changed(plivo("https://h.example/answer/", "", v, "mMpSDCOGxj+fw/HrbFaIyzNcwTadQ/3hoORxKqZDoVU=", vn, nonce, v3, "AAAA", v3n, nonce), func(*signature) {}, errSignature),
		"Plivo, V3 with a JSON body":                changed(plivo("https://h.example/in", "{}", v3, "A27F5slHZ6oCiuwEAnrF8agCFtiLO5KxYAsKJtorg7U=", v3n, nonce), func(s *signature) { s.kind = jsonType }, errUnread),
		"Plivo, no signature":                       changed(plivo("https://h.example/in", "To=2"), func(*signature) {}, httpd.ErrUnsigned),
		"Sinch, an example of its libraries":        sinchGood,
		"Sinch, another body":                       changed(sinchGood, func(s *signature) { s.body += " " }, errSignature),
		"Sinch, from three days ago":                changed(sinchGood, func(s *signature) { s.now = s.now.Add(72 * time.Hour) }, errStale),
		"Sinch, no nonce":                           changed(sinchGood, func(s *signature) { s.headers = s.headers[:2] }, httpd.ErrUnsigned),
		"Sinch, SHA-512": changed(sinch(androidBody, sx, "VYZnlIBT2GLEaLzE2oD+bLePTKqyPPwJbLgiejkfHg5DwCxVTxug7pozUbLx8kybi3HZ9/5eV/sEh74o1KmkRQ==", sx+"-Nonce", "n", sx+"-Timestamp", "1782903600", sx+"-Algorithm", "HmacSHA512"),
			func(s *signature) { s.secret, s.now = "foo", signingTime() }, nil),
		"Sinch, an unknown algorithm":  changed(sinchGood, func(s *signature) { s.headers = append(s.headers, sx+"-Algorithm", "none") }, errSignature),
		"Android":                      android(androidBody, androidSum, "1782903600"),
		"Android, in capitals":         android(androidBody, strings.ToUpper(androidSum), "1782903600"),
		"Android, another time":        changed(android(androidBody, androidSum, "1782903601"), func(*signature) {}, errSignature),
		"Android, an invalid time":     changed(android(androidBody[:len(androidBody)-1], androidSum, "}1782903600"), func(*signature) {}, errStale),
		"Android, from three days ago": changed(android(androidBody, androidSum, "1782903600"), func(s *signature) { s.now = signingTime().Add(72 * time.Hour) }, errStale),
		"Android, no signature":        changed(android(androidBody, "", "1782903600"), func(*signature) {}, httpd.ErrUnsigned),
	}
}

func TestSignaturesOfCarriersAreVerified(t *testing.T) {
	for name, tc := range signatures() {
		t.Run(name, func(t *testing.T) {
			if err := tc.check(); !errors.Is(err, tc.want) {
				t.Errorf("error = %v, want %v", err, tc.want)
			}
		})
	}
}

// V2 does not cover the parameters. A signature must not be valid for a second body.
func TestANonceIsAcceptedForOneBody(t *testing.T) {
	s := signature{
		verify: newNonces().verifyPlivo, secret: "tok", url: "https://h.example/answer/", kind: formType, body: "Text=a",
		headers: []string{"X-Plivo-Signature-V2", "mMpSDCOGxj+fw/HrbFaIyzNcwTadQ/3hoORxKqZDoVU=", "X-Plivo-Signature-V2-Nonce", nonce},
	}
	for range 2 {
		relaytest.NoError(t, s.check())
	}
	s.body = "Text=b"
	if err := s.check(); !errors.Is(err, errStale) {
		t.Errorf("error for another body = %v, want errStale", err)
	}
}

func TestTheOldestNoncesAreDeleted(t *testing.T) {
	n := newNonces()
	for i := range maxNonces + 2 {
		n.accept(fmt.Sprint(i), &SignedRequest{Body: []byte("a")})
	}
	otherPost := &SignedRequest{Body: []byte("b")}
	relaytest.Equal(t, "the number of stored nonces", len(n.used), maxNonces)
	relaytest.Equal(t, "the oldest nonce is accepted again", n.accept("0", otherPost), true)
	relaytest.Equal(t, "a stored nonce is accepted for another body", n.accept("5", otherPost), false)
}

func TestCredentialsAndSignaturesOfCarriers(t *testing.T) {
	const (
		path        = "/inbound/sms/android/phone?to=447860000001"
		body        = `{"event":"sms:received"}`
		sum         = "a1e1426748cd3a04ad020be3360667a0b497be07547aa3385e5e507cb67a1be8"
		plainToken  = "carrier-1"
		signedToken = "signs" // has a secret
	)
	for name, tc := range map[string]struct {
		path, body string
		headers    []string
		status     int
	}{
		"a source with a signature":                                   {path, body, []string{"X-Signature", sum, "X-Timestamp", "1782903600"}, 422},
		"a source with a wrong signature":                             {path, body + " ", []string{"X-Signature", sum, "X-Timestamp", "1782903600"}, 401},
		"a source without a signature":                                {path, body, nil, 401},
		"an unknown source with a credential":                         {"/inbound/sms/android/nobody", body, []string{"Authorization", "Bearer " + plainToken}, 422},
		"an unknown source with a signature":                          {"/inbound/sms/android/nobody", body, []string{"X-Signature", sum, "X-Timestamp", "1782903600"}, 401},
		"a source without a secret, with a signature":                 {"/inbound/sms/android/open", body, []string{"X-Signature", sum, "X-Timestamp", "1782903600"}, 401},
		"a source without the scope":                                  {"/inbound/sms/android/hook", body, []string{"X-Signature", sum, "X-Timestamp", "1782903600"}, 403},
		"a credential without a signature":                            {"/inbound/sms/android", body, []string{"Authorization", "Bearer " + signedToken}, 422},
		"a credential with a right signature":                         {"/inbound/sms/android", body, []string{"Authorization", "Bearer " + signedToken, "X-Signature", sum, "X-Timestamp", "1782903600"}, 422},
		"a credential with a wrong signature":                         {"/inbound/sms/android", body + " ", []string{"Authorization", "Bearer " + signedToken, "X-Signature", sum, "X-Timestamp", "1782903600"}, 401},
		"the carrier's JWT":                                           {"/inbound/sms/vonage/vonage", vonageBody, []string{"Authorization", "Bearer " + goodJWT}, 422},
		"the carrier's JWT for another body":                          {"/inbound/sms/vonage/vonage", vonageBody + " ", []string{"Authorization", "Bearer " + goodJWT}, 401},
		"a source of a carrier that does not sign":                    {"/inbound/sms/json/phone", body, nil, 401},
		"a credential with a secret, of a carrier that does not sign": {"/inbound/sms/json/phone", validJSON, []string{"Authorization", "Bearer " + signedToken}, 200},
		"an unknown carrier without a token":                          {"/inbound/sms/pigeon/phone", body, nil, 401},
	} {
		t.Run(name, func(t *testing.T) {
			app := newSurface(&recorder{})
			r := httptest.NewRequest("POST", tc.path, strings.NewReader(tc.body))
			r.Header.Set("Content-Type", "application/json")
			for i := 0; i+1 < len(tc.headers); i += 2 {
				r.Header.Set(tc.headers[i], tc.headers[i+1])
			}
			resp, err := app.Test(r, 5000)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the status", resp.StatusCode, tc.status)
			relaytest.Equal(t, "whether the answer has WWW-Authenticate", resp.Header.Get("WWW-Authenticate") != "", tc.status == 401)
		})
	}
}

// A carrier signs the public URL with the path and query as sent. The Host header may differ.
func TestSignaturesAreOverThePublicURL(t *testing.T) {
	posts := &recorder{}
	app := newSurface(posts)
	const form = "MessageSid=SM1&From=%2B1&To=%2B2&Body=a"
	sum := twilioSum("https://sms.example.com/gw/inbound/sms/twilio/tw?x=%20y", "BodyaFrom+1MessageSidSM1To+2")
	r := httptest.NewRequest("POST", "/inbound/sms/twilio/tw?x=%20y", strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Twilio-Signature", sum)
	r.Host = "10.0.0.7:8080"
	resp, err := app.Test(r, 5000)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the status", resp.StatusCode, 200)
	relaytest.Equal(t, "the number of accepted entries", len(posts.entries), 1)
	relaytest.Equal(t, "the type of the answer", resp.Header.Get("Content-Type"), "text/xml; charset=utf-8")
}

// twilioSum returns the signature of a URL and sorted fields.
func twilioSum(url, fields string) string {
	m := hmac.New(sha1.New, []byte("shh"))
	m.Write([]byte(url + fields))
	return base64.StdEncoding.EncodeToString(m.Sum(nil))
}

func FuzzVerify(f *testing.F) {
	for _, s := range signatures() {
		f.Add(s.url, s.kind, []byte(s.body), strings.Join(s.headers, "\n"))
	}
	f.Fuzz(func(t *testing.T, url, kind string, body []byte, headers string) {
		for name, a := range Adapters() {
			if a.Verify == nil {
				continue
			}
			s := signature{verify: a.Verify, secret: "a secret that no seed was signed with", url: url, kind: kind, body: string(body), headers: strings.Split(headers, "\n")}
			if s.check() == nil {
				t.Fatalf("%s: no error for an unknown secret", name)
			}
		}
	})
}
