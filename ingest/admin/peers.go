package admin

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/user"
)

// Headers of a request that another gateway makes: its node, the user whose request it
// passes on with the role, the time in Unix seconds, and the signature (gateway.Keys).
const (
	headerNode      = "X-Penstock-Gateway"
	headerActor     = "X-Penstock-Actor"
	headerRole      = "X-Penstock-Role"
	headerTime      = "X-Penstock-Time"
	headerSignature = "X-Penstock-Signature"
)

// maxPeerAnswer bounds what is kept of another gateway's answer, in bytes: a dry run or a
// trace. Events are read one by one.
const maxPeerAnswer = 16 << 20

// Peers queries the other gateways of the database for their journals. A
// nil Peers has none.
type Peers struct {
	node     string
	keys     gateway.Keys
	registry *gateway.Store
	client   *http.Client
	now      func() time.Time
}

// NewPeers returns the peers of a gateway. An answer may take as long as the request that
// needs it.
func NewPeers(node string, keys gateway.Keys, registry *gateway.Store, now func() time.Time) *Peers {
	return &Peers{node: node, keys: keys, registry: registry, client: &http.Client{}, now: now}
}

// awayJSON is a gateway whose journals an answer lacks.
type awayJSON struct {
	Node   string `json:"node"`
	SeenAt string `json:"seen_at"`
	Error  string `json:"error"`
}

func awayOf(p principal, g *gateway.Gateway, err error) awayJSON {
	return awayJSON{Node: g.Node, SeenAt: formatTime(g.SeenAt), Error: faultText(p, err)}
}

// others lists the other gateways; none for a request of one of them.
func (p *Peers) others(c *fiber.Ctx) ([]gateway.Gateway, error) {
	if p == nil || principalOf(c).peer != "" {
		return nil, nil
	}
	all, err := p.registry.Gateways(c.UserContext())
	var out []gateway.Gateway
	for _, g := range all {
		if g.Node != p.node {
			out = append(out, g)
		}
	}
	return out, err
}

// each queries every one of the gateways at the same time and reads the answers into a value
// each. It names those that did not answer.
func each[T any](c *fiber.Ctx, p *Peers, gateways []gateway.Gateway, request func(gateway.Gateway) peerRequest) (answers map[string]T, views []awayJSON) {
	answers = make(map[string]T, len(gateways))
	ctx, who := c.UserContext(), principalOf(c)
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, g := range gateways {
		wait.Go(func() {
			var answer T
			err := relay.Recovered("request to gateway "+g.Node, func() error {
				resp, err := p.ask(ctx, &g, request(g))
				if err == nil && resp.status != http.StatusOK {
					err = resp.refusal()
				}
				if err != nil {
					return err
				}
				if err := resp.decode(&answer); err != nil {
					return fmt.Errorf("its answer is not that of a gateway: %w", err)
				}
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				views = append(views, awayOf(who, &g, err))
				return
			}
			answers[g.Node] = answer
		})
	}
	wait.Wait()
	return answers, views
}

// peerRequest is a request to the internal API of another gateway.
type peerRequest struct {
	method, path string
	query        url.Values
	body         []byte
	p            principal // whose request is passed on
}

// peerAnswer is the answer of another gateway. Whoever has it closes the body.
type peerAnswer struct {
	status int
	body   io.ReadCloser
}

// decode reads an answer to its end.
func (a peerAnswer) decode(v any) error {
	defer func() { _ = a.body.Close() }()
	return json.NewDecoder(io.LimitReader(a.body, maxPeerAnswer)).Decode(v)
}

// refusal returns the error of an answer that is not 200.
func (a peerAnswer) refusal() error {
	defer func() { _ = a.body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(a.body, 200))
	return fmt.Errorf("answered %d: %s", a.status, bytes.TrimSpace(text))
}

// ask makes a request to another gateway.
func (p *Peers) ask(ctx context.Context, g *gateway.Gateway, r peerRequest) (peerAnswer, error) {
	if g.Away(p.now()) {
		return peerAnswer{}, relay.Errorf(relay.KindUnavailable, "gateway %s is away since %s", g.Node, formatTime(g.SeenAt))
	}
	resp, err := p.send(ctx, g.URL, r)
	if err != nil {
		return peerAnswer{}, relay.Errorf(relay.KindUnavailable, "gateway %s: %w", g.Node, err)
	}
	return resp, nil
}

// send makes a request to the gateway at a URL.
func (p *Peers) send(ctx context.Context, gatewayURL string, r peerRequest) (peerAnswer, error) {
	signed := gateway.Request{Method: r.method, Target: r.path, Node: p.node, Actor: r.p.Name, Role: string(r.p.Role), Time: p.now(), Body: r.body}
	if len(r.query) > 0 {
		signed.Target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, gatewayURL+signed.Target, bytes.NewReader(r.body))
	if err != nil {
		return peerAnswer{}, err
	}
	for name, value := range map[string]string{
		headerNode: signed.Node, headerActor: signed.Actor, headerRole: signed.Role, headerTime: strconv.FormatInt(signed.Time.Unix(), 10),
		headerSignature: hex.EncodeToString(p.keys.Sign(signed)), "Content-Type": "application/json",
	} {
		req.Header.Set(name, value)
	}
	resp, err := p.client.Do(req) //nolint:bodyclose // the receiver of the answer closes it
	if err != nil {
		return peerAnswer{}, err
	}
	return peerAnswer{resp.StatusCode, resp.Body}, nil
}

// ExchangeServer sends to the gateway at a URL the PostgreSQL server that this one used last,
// and returns the newer of that and its own.
func (p *Peers) ExchangeServer(ctx context.Context, gatewayURL string, server db.Server) (newer db.Server, err error) {
	body, err := json.Marshal(server)
	if err != nil {
		return newer, err
	}
	resp, err := p.send(ctx, gatewayURL, peerRequest{method: http.MethodPost, path: "/internal/server", body: body})
	if err != nil {
		return newer, err
	}
	if resp.status != http.StatusOK {
		return newer, resp.refusal()
	}
	return newer, resp.decode(&newer)
}

// passOn returns a request that another gateway has to answer from what only it has.
func passOn(c *fiber.Ctx, query url.Values) peerRequest {
	path := "/internal" + strings.Clone(c.Path()[len("/admin"):]) // in any case of letters
	return peerRequest{method: strings.Clone(c.Method()), path: path, query: query, body: slices.Clone(c.BodyRaw()), p: principalOf(c)}
}

// authorizePeer passes the requests of other gateways.
func (s *Surface) authorizePeer(c *fiber.Ctx) error {
	body, err := httpd.Body(c, maxForm)
	if err != nil {
		return err
	}
	seconds, _ := strconv.ParseInt(c.Get(headerTime), 10, 64)
	signature, _ := hex.DecodeString(c.Get(headerSignature))
	r := gateway.Request{
		Method: c.Method(), Target: c.OriginalURL(), Node: c.Get(headerNode), Actor: c.Get(headerActor), Role: c.Get(headerRole),
		Time: time.Unix(seconds, 0), Body: body,
	}
	if s.Peers == nil || !s.Peers.keys.Verify(r, signature) {
		return fiber.NewError(fiber.StatusUnauthorized, "Unauthenticated.")
	}
	if age := s.Now().Sub(r.Time).Abs(); age > gateway.MaxRequestAge {
		return fiber.NewError(fiber.StatusUnauthorized, "The clocks of the two gateways differ by "+age.Round(time.Second).String()+".")
	}
	httpd.AdmitOperator(c)
	c.Locals(principalKey{}, principal{Principal: httpd.Principal{Name: strings.Clone(r.Actor), Role: user.Admin}, peer: strings.Clone(r.Node), peerRole: user.Role(strings.Clone(r.Role))})
	return c.Next()
}

// exchangeServer answers ExchangeServer.
func (s *Surface) exchangeServer(c *fiber.Ctx) error {
	var theirs db.Server
	if err := readJSON(c, maxForm, &theirs); err != nil {
		return err
	}
	return c.JSON(s.NewerServer(theirs))
}

// tracedAt queries the gateway that a node names for an event; found is false if there is no
// such gateway, or it has no such event.
func (p *Peers) tracedAt(c *fiber.Ctx, node string) (t tracedJSON, found bool, err error) {
	gateways, err := p.others(c)
	if err != nil {
		return t, false, err
	}
	for _, g := range gateways {
		if g.Node != node {
			continue
		}
		resp, err := p.ask(c.UserContext(), &g, passOn(c, nil))
		if err != nil {
			return t, false, err
		}
		var answer struct{ Data *tracedJSON }
		err = resp.decode(&answer)
		if resp.status == http.StatusNotFound {
			return t, false, nil
		}
		if err != nil || answer.Data == nil {
			return t, false, relay.Errorf(relay.KindUnavailable, "gateway %s answered %d", node, resp.status)
		}
		return *answer.Data, true, nil
	}
	return t, false, nil
}

// passedOn is the query of a request, without the parameters that the gateway adds.
func passedOn(c *fiber.Ctx) url.Values {
	query, _ := url.ParseQuery(strings.Clone(string(c.Request().URI().QueryString())))
	query.Del("cursor")
	return query
}

// nodeOf is the node that an event's id names: "<node>-<kind><sequence>".
func nodeOf(id string) string {
	if i := strings.LastIndex(id, "-"); i >= 0 {
		return id[:i]
	}
	return id
}

// gatewayJSON is a gateway in the form for the operator.
type gatewayJSON struct {
	Node      string `json:"node"`
	URL       string `json:"url"`
	Version   string `json:"version"`
	StartedAt string `json:"started_at"`
	SeenAt    string `json:"seen_at"`
	Away      bool   `json:"away"`
}

func (s *Surface) listGateways(c *fiber.Ctx, sel *selection) error {
	if err := sel.Err(); err != nil {
		return err
	}
	views, err := s.gateways(c.UserContext())
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"data": views})
}

// gateways lists those of the database, by node.
func (s *Surface) gateways(ctx context.Context) ([]gatewayJSON, error) {
	views := []gatewayJSON{}
	if s.Peers == nil {
		return views, nil
	}
	gateways, err := s.Peers.registry.Gateways(ctx)
	for _, g := range gateways {
		views = append(views, gatewayJSON{
			Node: g.Node, URL: g.URL, Version: g.Version, StartedAt: formatTime(g.StartedAt), SeenAt: formatTime(g.SeenAt), Away: g.Away(s.Now()),
		})
	}
	return views, err
}

// forgetGateway removes one that does not come back. One that sends heartbeats would
// register itself again.
func (s *Surface) forgetGateway(c *fiber.Ctx) error {
	node := strings.Clone(c.Params("node"))
	if s.Peers == nil {
		return relay.Errorf(relay.KindNotFound, "gateway %s", node)
	}
	gateways, err := s.Peers.registry.Gateways(c.UserContext())
	if err != nil {
		return err
	}
	for _, g := range gateways {
		if g.Node == node {
			if !g.Away(s.Now()) {
				return relay.Errorf(relay.KindConflict, "Gateway %s sent a heartbeat at %s: stop it, and wait until it is away (%d seconds).", node, formatTime(g.SeenAt), int(gateway.AwayAfter.Seconds()))
			}
			httpd.NoteOf(c).Before = fiber.Map{"node": g.Node, "url": g.URL, "version": g.Version, "seen_at": formatTime(g.SeenAt)}
		}
	}
	if err := s.Peers.registry.Forget(c.UserContext(), node); err != nil {
		return err
	}
	return c.SendStatus(fiber.StatusNoContent)
}

// Recovered is the result of a recovery.
type Recovered struct {
	Count int `json:"count"` // events that were processed again
	// Unknown is the number of parts of messages that were due before processing stopped:
	// they are in the state unknown.
	Unknown int `json:"unknown"`
	// Server is the PostgreSQL server that was accepted; empty for none.
	Server string `json:"server,omitempty"`
	// Ledgers are those whose head went back with the database, and how far.
	Ledgers []string `json:"ledgers,omitempty"`
	// Missing is the period whose records may be missing; nil if none are.
	Missing *MissingRecords `json:"missing,omitempty"`
}

// MissingRecords is the time of writes that a database has lost. Those that came through
// the journal are processed again; those over REST, SOAP and the admin API are not.
type MissingRecords struct {
	Since string `json:"since"` // RFC 3339, or "the beginning"
	Until string `json:"until"` // RFC 3339
}

// MissingBetween returns the records of a time; since is zero for the beginning.
func MissingBetween(since, until time.Time) *MissingRecords {
	missing := &MissingRecords{Since: "the beginning", Until: until.UTC().Format(time.RFC3339)}
	if !since.IsZero() {
		missing.Since = since.UTC().Format(time.RFC3339)
	}
	return missing
}

// recover processes the journal again, of this gateway alone: each one has seen
// the database in a state of its own.
func (s *Surface) recover(c *fiber.Ctx) error {
	done, err := s.Recover(c.UserContext())
	done.Server, _ = c.Locals(acceptedKey{}).(string)
	if err != nil && (done.Server == "" || relay.KindOf(err) != relay.KindConflict) {
		return err
	}
	return c.JSON(done)
}

// acceptedKey is the key of the accepted server in a request's locals.
type acceptedKey struct{}

// acceptServer accepts the PostgreSQL server that was refused if the request names it,
// because the audit log cannot be written without a server.
func (s *Surface) acceptServer(c *fiber.Ctx) error {
	var request struct {
		AcceptServer bool `json:"accept_server"`
	}
	body, err := httpd.Body(c, maxForm)
	if err == nil && len(body) > 0 {
		err = decodeStrictly(body, &request)
	}
	if err != nil {
		return err
	}
	if !request.AcceptServer || s.AcceptServer == nil {
		return nil
	}
	accepted, err := s.AcceptServer(c.UserContext())
	c.Locals(acceptedKey{}, accepted)
	return err
}
