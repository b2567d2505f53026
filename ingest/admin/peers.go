package admin

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
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
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/user"
)

// The headers of a request from another gateway: its node, the name and role of the user who made
// the original request, the time in Unix seconds, and the signature (see gateway.Keys).
const (
	headerNode      = "X-Penstock-Gateway"
	headerActor     = "X-Penstock-Actor"
	headerRole      = "X-Penstock-Role"
	headerTime      = "X-Penstock-Time"
	headerSignature = "X-Penstock-Signature"
)

// maxPeerAnswer is the maximum size of an answer of another gateway, in bytes. Lists of events have
// no limit, because they are read one event at a time.
const maxPeerAnswer = 16 << 20

// Peers queries the other gateways that share the database. A nil Peers has no other gateways.
type Peers struct {
	node     string
	keys     gateway.Keys
	registry *gateway.Store
	client   *http.Client
	now      func() time.Time
}

// NewPeers returns the peers of a gateway. Only the context limits the time of requests to peers.
func NewPeers(node string, keys gateway.Keys, registry *gateway.Store, now func() time.Time) *Peers {
	return &Peers{node: node, keys: keys, registry: registry, client: &http.Client{}, now: now}
}

type awayJSON struct {
	Node   string `json:"node"`
	SeenAt string `json:"seen_at"`
	Error  string `json:"error"`
}

// otherGateways lists the other gateways. The list is empty for a request that another gateway has
// forwarded, because such a request is not forwarded again.
func (p *Peers) otherGateways(c *fiber.Ctx) ([]gateway.Gateway, error) {
	if p == nil || principalOf(c).peer != "" {
		return nil, nil
	}
	gateways, err := p.registry.Gateways(c.UserContext())
	return slices.DeleteFunc(gateways, func(g gateway.Gateway) bool { return g.Node == p.node }), err
}

// queryAll sends a request to each gateway concurrently and reads the bodies of the answers. It
// returns the results by node, and the gateways without a result.
func queryAll[T any](
	ctx context.Context, p *Peers, gateways []gateway.Gateway, request func(node string) peerRequest, read func(node string, body io.ReadCloser) (T, error),
) (results map[string]T, awayGateways []awayJSON) {
	results = make(map[string]T, len(gateways))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, g := range gateways {
		wg.Go(func() {
			var result T
			r := request(g.Node)
			err := relay.Recovered("request to gateway "+g.Node, func() error {
				body, err := p.call(ctx, &g, r)
				if err == nil {
					result, err = read(g.Node, body)
				}
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				awayGateways = append(awayGateways, awayJSON{Node: g.Node, SeenAt: formatTime(g.SeenAt), Error: faultText(r.sender, err)})
				return
			}
			results[g.Node] = result
		})
	}
	wg.Wait()
	return results, awayGateways
}

// forwardToAll forwards the request to each gateway and decodes the answers.
func forwardToAll[T any](c *fiber.Ctx, p *Peers, gateways []gateway.Gateway) (answers map[string]T, awayGateways []awayJSON) {
	r := peerRequestOf(c, peerQuery(c))
	return queryAll(c.UserContext(), p, gateways, func(string) peerRequest { return r }, decodeAnswer[T])
}

// peerRequest is a request to the internal API of another gateway.
type peerRequest struct {
	method, path string
	query        url.Values
	body         []byte
	sender       principal // of the original request
}

// decodeAnswer decodes the answer of another gateway and closes it.
func decodeAnswer[T any](node string, body io.ReadCloser) (answer T, err error) {
	defer func() { _ = body.Close() }()
	if err := json.NewDecoder(io.LimitReader(body, maxPeerAnswer)).Decode(&answer); err != nil {
		return answer, relay.Errorf(relay.KindUnavailable, "gateway %s: invalid answer: %w", node, err)
	}
	return answer, nil
}

// call sends a request to another gateway and returns the body of the answer, which the caller
// must close. It returns a NotFound error for the status 404, and an Unavailable error for any
// other status except 200 and for a gateway that is away.
func (p *Peers) call(ctx context.Context, g *gateway.Gateway, r peerRequest) (io.ReadCloser, error) {
	if g.Away(p.now()) {
		return nil, relay.Errorf(relay.KindUnavailable, "gateway %s has been away since %s", g.Node, formatTime(g.SeenAt))
	}
	body, err := p.send(ctx, g.URL, r)
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		err = relay.Errorf(relay.KindUnavailable, "gateway %s: %w", g.Node, err)
	}
	return body, err
}

// send sends a signed request to the gateway at a URL.
func (p *Peers) send(ctx context.Context, gatewayURL string, r peerRequest) (io.ReadCloser, error) {
	signed := gateway.Request{
		Method: r.method, Target: r.path, Node: p.node, Actor: r.sender.Name, Role: string(r.sender.Role), Time: p.now(), Body: r.body,
	}
	if len(r.query) > 0 {
		signed.Target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, gatewayURL+signed.Target, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		headerNode: signed.Node, headerActor: signed.Actor, headerRole: signed.Role, headerTime: strconv.FormatInt(signed.Time.Unix(), 10),
		headerSignature: hex.EncodeToString(p.keys.Sign(signed)), "Content-Type": "application/json",
	} {
		req.Header.Set(name, value)
	}
	resp, err := p.client.Do(req) //nolint:bodyclose // the caller closes the body
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer func() { _ = resp.Body.Close() }()
	kind := relay.KindUnavailable
	if resp.StatusCode == http.StatusNotFound {
		kind = relay.KindNotFound
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
	return nil, relay.Errorf(kind, "answered %d: %s", resp.StatusCode, bytes.TrimSpace(text))
}

// ExchangeServer sends the PostgreSQL server that this gateway last used to the gateway at a URL,
// and returns the newer of the servers of both gateways.
func (p *Peers) ExchangeServer(ctx context.Context, gatewayURL string, server db.Server) (newer db.Server, err error) {
	encoded, err := json.Marshal(server)
	if err != nil {
		return newer, err
	}
	body, err := p.send(ctx, gatewayURL, peerRequest{method: http.MethodPost, path: "/internal/server", body: encoded})
	if err != nil {
		return newer, err
	}
	return decodeAnswer[db.Server](gatewayURL, body)
}

// peerRequestOf returns the request c for the internal API of another gateway, with another query.
func peerRequestOf(c *fiber.Ctx, query url.Values) peerRequest {
	path := "/internal" + strings.Clone(c.Path()[len("/admin"):]) // the router ignores case
	return peerRequest{method: strings.Clone(c.Method()), path: path, query: query, body: slices.Clone(c.BodyRaw()), sender: principalOf(c)}
}

// authorizePeer passes requests that are signed by another gateway.
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
	c.Locals(principalKey{}, principal{
		Principal: httpd.Principal{Name: strings.Clone(r.Actor), Role: user.Admin}, peer: strings.Clone(r.Node), peerRole: user.Role(strings.Clone(r.Role)),
	})
	return c.Next()
}

// exchangeServer answers ExchangeServer of another gateway.
func (s *Surface) exchangeServer(c *fiber.Ctx) error {
	var peerServer db.Server
	if err := readJSON(c, maxForm, &peerServer); err != nil {
		return err
	}
	return c.JSON(s.NewerServer(peerServer))
}

// tracedEvent queries the gateway in an event's id, "<node>-<kind><sequence>", for the event. It
// returns a NotFound error if the gateway or the event does not exist.
func (p *Peers) tracedEvent(c *fiber.Ctx, id string) (tracedJSON, error) {
	gateways, err := p.otherGateways(c)
	i := slices.IndexFunc(gateways, func(g gateway.Gateway) bool { return g.Node == id[:max(0, strings.LastIndex(id, "-"))] })
	if err == nil && i < 0 {
		err = relay.Errorf(relay.KindNotFound, "event %s", id)
	}
	if err != nil {
		return tracedJSON{}, err
	}
	body, err := p.call(c.UserContext(), &gateways[i], peerRequestOf(c, nil))
	if err != nil {
		return tracedJSON{}, err
	}
	answer, err := decodeAnswer[struct{ Data tracedJSON }](gateways[i].Node, body)
	return answer.Data, err
}

// peerQuery returns the query of a request without the cursor, which differs between gateways.
func peerQuery(c *fiber.Ctx) url.Values {
	query, _ := url.ParseQuery(strings.Clone(string(c.Request().URI().QueryString())))
	query.Del("cursor")
	return query
}

type gatewayJSON struct {
	gateway.Gateway
	Away bool `json:"away"`
}

func (s *Surface) listGateways(c *fiber.Ctx) error {
	views, err := s.gateways(c.UserContext())
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"data": views})
}

// gateways lists the gateways that share the database, by node.
func (s *Surface) gateways(ctx context.Context) ([]gatewayJSON, error) {
	views := []gatewayJSON{}
	if s.Peers == nil {
		return views, nil
	}
	gateways, err := s.Peers.registry.Gateways(ctx)
	for _, g := range gateways {
		views = append(views, gatewayJSON{g, g.Away(s.Now())})
	}
	return views, err
}

// forgetGateway removes a gateway from the registry if it is away. A gateway that sends heartbeats
// would register itself again.
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
		if g.Node != node {
			continue
		}
		if !g.Away(s.Now()) {
			return relay.Errorf(relay.KindConflict, "Gateway %s sent a heartbeat at %s: stop it, and wait until it is away (%d seconds).",
				node, formatTime(g.SeenAt), int(gateway.AwayAfter.Seconds()))
		}
		httpd.NoteOf(c).Before = g
	}
	if err := s.Peers.registry.Forget(c.UserContext(), node); err != nil {
		return err
	}
	return c.SendStatus(fiber.StatusNoContent)
}

// RecoveryResult is the result of a recovery.
type RecoveryResult struct {
	Count int `json:"count"` // the number of events that were processed again
	// Unknown is the number of message parts that are now in state unknown, because they were
	// due before the outage and may have been sent.
	Unknown int `json:"unknown"`
	// Server is the PostgreSQL server that was accepted; empty for none.
	Server string `json:"server,omitempty"`
	// Ledgers lists the ledgers that lost signed entries, with the numbers of entries.
	Ledgers []string `json:"ledgers,omitempty"`
	// Missing is the period of which records may be missing; nil for none.
	Missing *MissingRecords `json:"missing,omitempty"`
}

// MissingRecords is the period of writes that a database has lost. Processing journalled events
// again restores their effects; changes over REST, SOAP and the admin API are lost.
type MissingRecords struct {
	Since string `json:"since"` // RFC 3339, or "the beginning"
	Until string `json:"until"` // RFC 3339
}

// MissingBetween returns the MissingRecords from since to until. A zero since is the time of the
// first record.
func MissingBetween(since, until time.Time) *MissingRecords {
	missing := &MissingRecords{Since: "the beginning", Until: until.UTC().Format(time.RFC3339)}
	if !since.IsZero() {
		missing.Since = since.UTC().Format(time.RFC3339)
	}
	return missing
}

// recover processes the journal of this gateway again. Each gateway must be recovered separately,
// because different effects of each journal are lost.
func (s *Surface) recover(c *fiber.Ctx) error {
	recovered, err := s.Recover(c.UserContext())
	recovered.Server, _ = c.Locals(acceptedKey{}).(string)
	if err != nil && (recovered.Server == "" || relay.KindOf(err) != relay.KindConflict) {
		return err
	}
	return c.JSON(recovered)
}

type acceptedKey struct{}

// acceptServer accepts the refused PostgreSQL server if accept_server is set. It runs before the
// request is recorded, because the audit log is in the database.
func (s *Surface) acceptServer(c *fiber.Ctx) error {
	var request struct {
		AcceptServer bool `json:"accept_server"`
	}
	body, err := httpd.Body(c, maxForm)
	if err == nil && len(body) > 0 {
		err = params.DecodeStrictly(body, &request)
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
