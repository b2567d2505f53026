package soap

import (
	"context"
	"errors"
	"log/slog"
	"mime"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
)

// Path is the path of the interface.
const Path = "/soap"

// Messages sends messages; message.Service implements it.
type Messages interface {
	Text(text string, maxParts int) message.Body
	Send(ctx context.Context, o message.Order) (message.OrderResult, error)
}

// Deps are the surface's dependencies; all are required.
type Deps struct {
	Messages       Messages
	Logins         Logins
	AttemptLimiter *httpd.AttemptLimiter // limits wrong passwords
	PublicURL      string                // the gateway's URL for clients, for the WSDL
	Logger         *slog.Logger
	Now            func() time.Time
}

// Surface answers SOAP requests. It is safe for concurrent use.
type Surface struct {
	Deps
	operations []operation
	wsdl       []byte
	auth       *authenticator
}

// New returns the surface.
func New(d Deps) *Surface {
	return &Surface{
		Deps: d, operations: operations(), auth: newAuthenticator(d.Logins, d.Now), wsdl: wsdl(strings.TrimSuffix(d.PublicURL, "/") + Path),
	}
}

// Mount adds the routes.
func (s *Surface) Mount(app *httpd.App) {
	app.Get(Path, s.describe)
	app.Post(Path, s.post)
}

// describe answers with the WSDL at ?wsdl; the case of the letters does not matter.
func (s *Surface) describe(c *fiber.Ctx) error {
	wantsWSDL := false
	for name := range c.Request().URI().QueryArgs().All() {
		wantsWSDL = wantsWSDL || strings.EqualFold(string(name), "wsdl")
	}
	if !wantsWSDL {
		return httpd.Message(c, fiber.StatusNotFound, "Not found. The description of the SOAP interface is at "+Path+"?wsdl.")
	}
	c.Set(fiber.HeaderContentType, soap11.contentType())
	return c.Send(s.wsdl)
}

// post answers a request. It answers errors with a Fault.
func (s *Surface) post(c *fiber.Ctx) error {
	e, body, err := s.serve(c)
	status := fiber.StatusOK
	if err != nil {
		f := s.faultOf(c, e, err)
		e.version, status, body = f.version, f.status(), f.encode()
	}
	c.Set(fiber.HeaderContentType, e.version.contentType())
	return c.Status(status).Send(body)
}

// tryLater is the reason of a temporary refusal.
const tryLater = "Service temporarily unavailable. Please try again later."

// faultOf converts an error to a Fault. It logs an unexpected error, and the Fault has the
// request id only.
func (s *Surface) faultOf(c *fiber.Ctx, e envelope, err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if errors.Is(err, httpd.ErrOverloaded) {
		return &fault{version: e.version, code: overloaded, reason: tryLater}
	}
	if fiberErr, ok := errors.AsType[*fiber.Error](err); ok {
		return e.senderFault(fiberErr.Message)
	}
	if relay.KindOf(err) == relay.KindUnavailable {
		return &fault{version: e.version, code: receiverFault, reason: tryLater}
	}
	s.Logger.ErrorContext(c.UserContext(), "request failed", "path", Path, "error", err)
	return &fault{version: e.version, code: receiverFault, reason: "Internal error. Request " + httpd.RequestID(c.UserContext()) + "."}
}

// serve parses a request and performs its operation.
func (s *Surface) serve(c *fiber.Ctx) (e envelope, body []byte, err error) {
	contentType := utils.CopyString(c.Get(fiber.HeaderContentType))
	e.version = versionOf(contentType)
	raw, err := httpd.Body(c, maxBody)
	if errors.Is(err, httpd.ErrBodyTooLarge) {
		return e, nil, e.senderFault("The body is longer than 256 KiB.")
	}
	if err != nil {
		return e, nil, err
	}
	if e, err = parseEnvelope(raw, contentType); err != nil {
		return e, nil, err
	}
	op, err := s.operationOf(&e, c.Get("SOAPAction"), contentType)
	if err != nil {
		return e, nil, err
	}
	a, err := s.perform(c, &e, op)
	if err != nil {
		return e, nil, err
	}
	return e, a.encode(e.version, op), nil
}

// operationOf returns the operation of the element in the Body. It refuses a SOAPAction of
// another operation, because a proxy may have authorized the request by its SOAPAction.
func (s *Surface) operationOf(e *envelope, header, contentType string) (operation, error) {
	requested := slices.IndexFunc(s.operations, func(o operation) bool { return e.request.hasName(Namespace, o.name) })
	if requested < 0 {
		return operation{}, e.senderFault("There is no operation " + quoteClipped(e.request.name.Local) + " in the namespace " + quoteClipped(e.request.name.Space) + ".")
	}
	action := strings.Trim(header, " \t\"")
	if _, parameters, err := mime.ParseMediaType(contentType); err == nil && e.version == soap12 {
		action = parameters["action"]
	}
	for i, o := range s.operations {
		if i != requested && action == o.soapAction() {
			return operation{}, e.senderFault("The SOAPAction names " + o.action + ", the Body contains " + s.operations[requested].name + ".")
		}
	}
	return s.operations[requested], nil
}

// accountOf returns the account of the credentials in the header auth.
func (s *Surface) accountOf(c *fiber.Ctx, e *envelope) (relay.AccountID, error) {
	refuse := func(reason string) (relay.AccountID, error) {
		return 0, &fault{version: e.version, code: unauthenticated, reason: "Unauthenticated: " + reason + "."}
	}
	if e.auth == nil {
		return refuse("the header " + authHeader + " of the namespace " + Namespace + " is missing")
	}
	var found mistakes
	v := decode(credentials(), e.auth, authHeader+".", &found)
	if len(found) > 0 {
		return refuse(found.String())
	}
	username, password := v.text("username"), v.text("password")
	attempt := httpd.AttemptOf(c, "SOAP username "+username, username+"\x00"+password)
	if wait := s.AttemptLimiter.Wait(attempt); wait > 0 {
		c.Set(fiber.HeaderRetryAfter, httpd.RetryAfter(wait))
		return 0, &fault{version: e.version, code: tooManyAttempts, reason: httpd.TooManyAttempts}
	}
	pending := s.AttemptLimiter.CheckInventory() // the answer to wrong credentials, if not nil
	acct, err := s.auth.authenticate(c.UserContext(), username, password)
	switch {
	case relay.KindOf(err) == relay.KindUnauthenticated:
		s.AttemptLimiter.RecordFailure(attempt)
		if pending != nil {
			return 0, pending
		}
		return refuse("unknown username or password")
	case err == nil:
		s.AttemptLimiter.RecordSuccess(attempt)
	}
	return acct, err
}

// perform authenticates a request and performs its operation. Errors with a response code are in
// the answer. The description of an accepted order has the message ids, which delivery reports
// have too.
func (s *Surface) perform(c *fiber.Ctx, e *envelope, op operation) (answer, error) {
	acct, err := s.accountOf(c, e)
	if err != nil {
		return refusal(op, err)
	}
	if err := httpd.Admit(c, httpd.API, acct); err != nil {
		return answer{}, err
	}
	var found mistakes
	v := decode(op.children, e.request, "", &found)
	if len(found) > 0 {
		return answer{code: invalid, description: "Invalid request: " + found.String() + "."}, nil
	}
	order, err := s.orderOf(op, v)
	if err != nil {
		return refusal(op, err)
	}
	order.Account, order.IP = acct, httpd.ClientIP(c)
	sent, err := s.Messages.Send(c.UserContext(), order)
	if err != nil {
		return refusal(op, err)
	}
	ids := make([]string, len(sent.Messages))
	for i, m := range sent.Messages {
		ids[i] = m.ID.String()
	}
	return answer{code: accepted, credits: sent.Cost, description: "Accepted. Message ids: " + strings.Join(ids, ", ") + "."}, nil
}
