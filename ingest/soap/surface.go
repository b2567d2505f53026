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
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/message"
)

// Path is where the interface is.
const Path = "/soap"

// Messages sends; message.Service is one.
type Messages interface {
	Text(text string, maxParts int) message.Body
	Send(ctx context.Context, o message.Order) (message.Sent, error)
}

// Deps are what the surface stands on; both are needed.
type Deps struct {
	Messages Messages
	Logins   Logins
}

// Options are what may be chosen.
type Options struct {
	// PublicURL is where clients reach the gateway; the WSDL names it.
	PublicURL string
	Logger    *slog.Logger     // nil: slog.Default
	Now       func() time.Time // nil: time.Now
}

// Surface answers SOAP requests. It is safe for concurrent use.
type Surface struct {
	Deps
	log        *slog.Logger
	now        func() time.Time
	operations []operation
	wsdl       []byte
	door       *doorkeeper
}

// New returns the surface.
func New(d Deps, o Options) *Surface {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	all := operations()
	return &Surface{
		Deps: d, log: o.Logger, now: o.Now, operations: all, door: newDoorkeeper(d.Logins, o.Now),
		wsdl: wsdl(all, strings.TrimSuffix(o.PublicURL, "/")+Path),
	}
}

// Mount adds the routes.
func (s *Surface) Mount(app *httpd.App) {
	app.Get(Path, s.describe)
	app.Post(Path, s.post)
}

// describe serves the WSDL at ?wsdl, however that is written.
func (s *Surface) describe(c *fiber.Ctx) error {
	wanted := false
	for name := range c.Request().URI().QueryArgs().All() {
		wanted = wanted || strings.EqualFold(string(name), "wsdl")
	}
	if !wanted {
		return httpd.Message(c, fiber.StatusNotFound, "Not found. The description of the SOAP interface is at "+Path+"?wsdl.")
	}
	c.Set(fiber.HeaderContentType, soap11.contentType())
	return c.Send(s.wsdl)
}

// post answers a request, in every case in SOAP's form.
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

// faultOf makes a Fault of any error. What nobody expected is ours alone; the
// request's id leads to it in the log.
func (s *Surface) faultOf(c *fiber.Ctx, e envelope, err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if http, ok := errors.AsType[*fiber.Error](err); ok {
		return e.sender(http.Message)
	}
	id := string(c.Response().Header.Peek("X-Request-Id"))
	s.log.Error("request failed", "request_id", id, "path", Path, "error", err)
	return &fault{version: e.version, code: receiverFault, reason: "Internal error. Request " + id + "."}
}

// serve reads a request, finds out whose it is, and has it done.
func (s *Surface) serve(c *fiber.Ctx) (e envelope, body []byte, err error) {
	contentType := utils.CopyString(c.Get(fiber.HeaderContentType))
	e.version = versionOf(contentType)
	raw, err := httpd.Body(c, maxBody)
	if errors.Is(err, httpd.ErrBodyTooLarge) {
		return e, nil, e.sender("The body is longer than 256 KiB.")
	}
	if err != nil {
		return e, nil, err
	}
	if e, err = open(raw, contentType); err != nil {
		return e, nil, err
	}
	op, err := s.operationOf(&e, c.Get("SOAPAction"), contentType)
	if err != nil {
		return e, nil, err
	}
	a, err := s.perform(c.UserContext(), &e, op, utils.CopyString(c.IP()))
	return e, a.encode(e.version, op), err
}

// operationOf finds the operation that the element in the Body names. A
// SOAPAction, quoted or not, that names another one is refused: what stands
// before the gateway may have let the request through for its sake.
func (s *Surface) operationOf(e *envelope, header, contentType string) (operation, error) {
	at := slices.IndexFunc(s.operations, func(o operation) bool { return e.request.is(Namespace, o.name) })
	if at < 0 {
		return operation{}, e.sender("There is no operation " + clip(e.request.name.Local) + " in the namespace " + clip(e.request.name.Space) + ".")
	}
	hint := strings.Trim(header, " \t\"")
	if _, parameters, err := mime.ParseMediaType(contentType); err == nil && e.version == soap12 {
		hint = parameters["action"]
	}
	for i, o := range s.operations {
		if i != at && hint == o.soapAction() {
			return operation{}, e.sender("The SOAPAction names " + o.action + ", the Body holds " + s.operations[at].name + ".")
		}
	}
	return s.operations[at], nil
}

// perform answers a request of somebody who is known. What a client can mend is
// part of the answer, all else an error.
func (s *Surface) perform(ctx context.Context, e *envelope, op operation, ip string) (answer, error) {
	acct, err := s.who(ctx, e)
	if err == nil {
		return s.send(ctx, acct, e, op, ip)
	}
	if a, ok := refusal(op, err); ok {
		return a, nil
	}
	return answer{}, err
}

// who returns the account of the header auth.
func (s *Surface) who(ctx context.Context, e *envelope) (account.ID, error) {
	stranger := func(reason string) (account.ID, error) {
		return 0, &fault{version: e.version, code: unauthenticated, reason: "Unauthenticated: " + reason + "."}
	}
	if e.auth == nil {
		return stranger("the header " + authHeader + " of the namespace " + Namespace + " is missing")
	}
	var wrong mistakes
	v := decode(credentials(), e.auth, authHeader+".", &wrong)
	if len(wrong) > 0 {
		return stranger(wrong.String())
	}
	acct, err := s.door.admit(ctx, v.text("username"), v.text("password"))
	if relay.KindOf(err) == relay.KindUnauthenticated {
		return stranger("unknown username or password")
	}
	return acct, err
}

func (s *Surface) send(ctx context.Context, acct account.ID, e *envelope, op operation, ip string) (answer, error) {
	var wrong mistakes
	v := decode(op.children, e.request, "", &wrong)
	if len(wrong) > 0 {
		return answer{code: invalid, description: "Invalid request: " + wrong.String() + "."}, nil
	}
	order, err := s.orderOf(op, v)
	if err == nil {
		order.Account, order.IP = acct, ip
		var sent message.Sent
		if sent, err = s.Messages.Send(ctx, order); err == nil {
			return acceptedAnswer(sent), nil
		}
	}
	if a, ok := refusal(op, err); ok {
		return a, nil
	}
	return answer{}, err
}
