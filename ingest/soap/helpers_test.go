package soap

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/relaytest"
)

// messageService records orders and returns the configured result.
type messageService struct {
	orders []message.Order
	err    error
}

// plainBody is a text body of a single part.
type plainBody struct {
	text     string
	maxParts int
}

func (p plainBody) Encode(byte, func(string) bool) (message.Encoded, error) {
	return message.Encoded{Coding: message.GSM, Parts: []message.Part{{Text: fmt.Sprintf("%q max %d", p.text, p.maxParts)}}}, nil
}

func (s *messageService) Text(text string, maxParts int) message.Body {
	return plainBody{text, maxParts}
}

func (s *messageService) Send(_ context.Context, o message.Order) (sent message.OrderResult, err error) {
	if s.err != nil {
		return sent, s.err
	}
	s.orders = append(s.orders, o)
	for i, number := range o.Destinations {
		sent.Messages = append(sent.Messages, message.View{ID: message.ID(100 + i), Destination: number})
		sent.Cost++
	}
	return sent, nil
}

// loginStore holds the logins of a test; a password is stored as its SHA-256.
type loginStore struct {
	mu     sync.Mutex
	logins map[string]account.Login
	err    error
}

func newLoginStore() *loginStore {
	return &loginStore{logins: map[string]account.Login{
		"acme":   {Username: "acme", Account: 1, Password: account.HashToken("secret")},
		"globex": {Username: "globex", Account: 2, Password: account.HashToken("öther")},
	}}
}

func (s *loginStore) Login(_ context.Context, username string) (account.Login, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return account.Login{}, s.err
	}
	l, ok := s.logins[username]
	if !ok {
		return l, relay.Errorf(relay.KindNotFound, "login")
	}
	return l, nil
}

// wire is the surface in an app. It checks every answer against the contract.
type wire struct {
	t        *testing.T
	app      *fiber.App
	messages *messageService
	logins   *loginStore
	log      strings.Builder
	check    *contracttest.Checker
	limiter  *httpd.AttemptLimiter
}

func clock() time.Time { return time.Date(2026, 11, 20, 9, 34, 15, 0, time.UTC) }

func newWire(t *testing.T) *wire {
	t.Helper()
	w := &wire{t: t, messages: &messageService{}, logins: newLoginStore(), check: contracttest.Open(t, OpenAPI())}
	s := New(Deps{
		Messages: w.messages, Logins: w.logins, AttemptLimiter: httpd.NewAttemptLimiter(clock), PublicURL: "https://gw.example/", Logger: slog.New(slog.NewTextHandler(&w.log, nil)), Now: clock,
	})
	s.auth.check = func(hash, sum string) (bool, error) { return hash == sum, nil }
	w.limiter = s.AttemptLimiter
	w.app = httpd.New(httpd.Options{Logger: slog.New(slog.DiscardHandler), Seed: "req-"})
	s.Mount(w.app)
	w.app.Use(httpd.NotFound)
	return w
}

// httpAnswer is an answer to a request.
type httpAnswer struct {
	status      int
	contentType string
	body        string
}

func (w *wire) ask(method, target, body string, headers ...string) httpAnswer {
	w.t.Helper()
	status, got, header := answertest.Send(w.t, w.app, answertest.Request(method, target, body, headers...))
	if method == "GET" {
		target = strings.NewReplacer("WSDL", "wsdl", "a=b&Wsdl", "wsdl", "x=wsdl", "wsdl").Replace(target) // the contract has one spelling
	}
	for _, difference := range w.check.Check(contracttest.Exchange{
		Method: method, Target: target, Status: status, Answer: header, AnswerBody: []byte(got),
	}) {
		w.t.Error(difference)
	}
	if strings.Contains(header.Get("Content-Type"), "xml") {
		relaytest.NoError(w.t, wellFormed([]byte(got)))
	}
	return httpAnswer{status, header.Get("Content-Type"), got}
}

// wellFormed returns an error unless the document is well-formed XML.
func wellFormed(b []byte) error {
	for d := xml.NewDecoder(strings.NewReader(string(b))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%w: %s", err, b)
		}
	}
}

const (
	ns11 = "http://schemas.xmlsoap.org/soap/envelope/"
	ns12 = "http://www.w3.org/2003/05/soap-envelope"

	login = `<auth xmlns="urn:penstock:messaging"><username>acme</username><password>secret</password></auth>`
	text1 = `<SoapSendSms xmlns="urn:penstock:messaging"><destinationarray><number>447700900123</number></destinationarray>` +
		`<message>hi</message><messagetype>text</messagetype></SoapSendSms>`
)

func enveloped(namespace, header, body string) string {
	return `<?xml version="1.0" encoding="utf-8"?><e:Envelope xmlns:e="` + namespace + `"><e:Header>` + header + `</e:Header><e:Body>` + body + `</e:Body></e:Envelope>`
}

// request returns a SOAP 1.1 envelope with an operation and the credentials of acme.
func request(operation, children string) string {
	return enveloped(ns11, login, "<"+operation+` xmlns="urn:penstock:messaging">`+children+"</"+operation+">")
}
