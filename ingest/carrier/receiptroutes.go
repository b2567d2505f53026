package carrier

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/account"
)

// Simulator is the source of receipts of the simulated carrier.
const Simulator = "simulator"

// Signer signs the URLs for delivery receipts, so that carriers need no token of an
// account. The zero value accepts no URL.
type Signer struct{ key []byte }

// NewSigner returns a Signer with a key, which must be the same for all gateways.
func NewSigner(key string) Signer { return Signer{key: []byte(key)} }

func (s Signer) sign(path, ref string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(path + "\x00" + ref))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// ReceiptURL returns the URL at which a carrier with a kind (kannel, json) and a name
// reports about a part.
func (s Signer) ReceiptURL(publicURL, kind, name, ref string) string {
	path := receiptPath + kind + "/" + name
	return publicURL + path + "?" + url.Values{"ref": {ref}, "sig": {s.sign(path, ref)}}.Encode()
}

// SimulatedReceipt returns the journal entry of a receipt of the simulator.
func SimulatedReceipt(ref, state string) intake.Entry {
	body, _ := json.Marshal(map[string]string{"ref": ref, "state": state}) // strings never fail
	return intake.Entry{Source: Simulator, Path: receiptPath + Simulator, ContentType: "application/json", Body: body}
}

// MountReceipts adds the paths for delivery receipts, one for each parser with an adapter. The paths
// accept signed URLs and tokens of carriers.
func (s *Surface) MountReceipts(app *fiber.App, auth *httpd.Auth, receipts Intake, signer Signer) {
	group := app.Group(strings.TrimSuffix(receiptPath, "/"))
	parse := func(e *intake.Entry) error {
		_, err := parseReceipt(e)
		return err
	}
	for kind := range receiptParsers() {
		if a, ok := s.adapters[kind]; ok {
			admit := requireSignedURL(signer, auth.Require(account.Carrier, authStyle()))
			mount(group, kind, admit, s.acceptPost(receipts, kind, a, parse)) // the answer is the same as to a message
		}
	}
	group.Use(auth.Require(account.Carrier, authStyle()))
}

// requireSignedURL accepts URLs with a valid signature and passes other requests to fallback.
func requireSignedURL(signer Signer, fallback fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ref, sig := c.Query("ref"), []byte(c.Query("sig"))
		if len(signer.key) > 0 && ref != "" && hmac.Equal([]byte(signer.sign(c.Path(), ref)), sig) {
			if err := httpd.Admit(c, httpd.Webhooks, 0); err != nil {
				return err
			}
			return c.Next()
		}
		return fallback(c)
	}
}
