package admin

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/ledger/merkle"
)

type ledgerJSON struct {
	ID          string          `json:"id"`
	Account     relay.AccountID `json:"account"`
	AccountName string          `json:"account_name"`
	Name        string          `json:"name"`
	Declared    bool            `json:"declared"` // false if only the log of the ledger remains
	Hash        string          `json:"hash"`     // a random identifier of the ledger, not a digest
	Claims      int64           `json:"claims"`   // the limit for each token; 0 means without limit
	Expiry      string          `json:"expiry"`   // the lifetime of tokens; "" means without limit
	Entries     int64           `json:"entries"`
	Signed      int64           `json:"signed"`     // the number of entries that the head covers
	Checkpoint  string          `json:"checkpoint"` // the signed head; "" if there is none yet
}

// listLedgers lists the ledgers of one or all accounts. The cursor is the number of ledgers
// before the page.
func (s *Surface) listLedgers(c *fiber.Ctx, sel *selection) error {
	acct, limit, offset := sel.account(), sel.limit(), sel.numericCursor()
	names, overviews, err := findWithNames(s, sel, acct, s.Ledgers.Overviews)
	if err != nil {
		return err
	}
	start := int(min(offset, uint64(len(overviews)))) //nolint:gosec // at most the length
	page := overviews[start:min(start+limit, len(overviews))]
	views, nextCursor := httpd.Each(page, func(o ledger.PlacedLog) ledgerJSON {
		view := ledgerJSON{
			ID: o.Ledger, Account: o.Account, AccountName: names[o.Account], Name: o.Declaration.Name, Declared: o.Declared(), Hash: o.Hash,
			Claims: o.Declaration.Claims, Entries: o.Log.Entries, Signed: o.Log.Signed, Checkpoint: o.Log.Head,
		}
		if o.Declaration.Expiry > 0 {
			view.Expiry = o.Declaration.Expiry.String()
		}
		return view
	}), ""
	if start+limit < len(overviews) {
		nextCursor = strconv.Itoa(start + limit)
	}
	return sendPage(c, views, nextCursor)
}

// ledgerEntryJSON is an entry of a ledger.
type ledgerEntryJSON struct {
	Sequence int64            `json:"sequence"`
	Type     ledger.EntryType `json:"type"`
	At       string           `json:"at"`
	Token    string           `json:"token"` // the id of the token: the SHA-256 of its text
	Hash     string           `json:"hash"`  // of the entry's leaf, base64
	Data     json.RawMessage  `json:"data"`
}

// listLedgerEntries lists the entries of a ledger, newest first.
func (s *Surface) listLedgerEntries(c *fiber.Ctx, sel *selection) error {
	acct, limit, beforeSeq := sel.requiredAccount(), sel.limit(), sel.numericCursor()
	if err := sel.Err(); err != nil {
		return err
	}
	found, err := s.Ledgers.Recent(c.UserContext(), acct, params.Path(c, "ledger_id"), int64(beforeSeq), limit) //nolint:gosec // a sequence
	if err != nil {
		return err
	}
	views, nextCursor := httpd.Each(found, func(e ledger.LoggedEntry) ledgerEntryJSON {
		return ledgerEntryJSON{e.Sequence, e.Type, *rfc3339(e.At), e.Token, e.Hash, e.Data}
	}), ""
	if n := len(found); n == limit && found[n-1].Sequence > 0 {
		nextCursor = strconv.FormatInt(found[n-1].Sequence, 10)
	}
	return sendPage(c, views, nextCursor)
}

type generatedTokenJSON struct {
	Sequence    int64   `json:"sequence"` // of the first entry of the token
	ID          string  `json:"id"`
	GeneratedAt string  `json:"generated_at"`
	ExpiresAt   *string `json:"expires_at"` // null means never
	Claimed     int64   `json:"claimed"`
	Remaining   *int64  `json:"remaining"` // null means without limit
}

// listLedgerTokens lists the tokens of a ledger, newest first.
func (s *Surface) listLedgerTokens(c *fiber.Ctx, sel *selection) error {
	acct, prefix, limit, beforeSeq := sel.requiredAccount(), strings.ToLower(sel.text("q")), sel.limit(), sel.numericCursor()
	if strings.Trim(prefix, "0123456789abcdef") != "" {
		sel.Add("q", "The q must be the beginning of an id, in hexadecimal digits.")
	}
	if err := sel.Err(); err != nil {
		return err
	}
	found, err := s.Ledgers.Tokens(c.UserContext(), acct, params.Path(c, "ledger_id"), prefix, int64(beforeSeq), limit+1) //nolint:gosec // a sequence
	if err != nil {
		return err
	}
	page, nextCursor := trimPage(found, limit, func(t ledger.ListedToken) string { return strconv.FormatInt(t.Sequence, 10) })
	return sendPage(c, httpd.Each(page, func(t ledger.ListedToken) generatedTokenJSON {
		return generatedTokenJSON{t.Sequence, t.ID, formatTime(t.CreatedAt), formatTimeOrNil(t.ExpiresAt), t.Claimed, t.Remaining()}
	}), nextCursor)
}

// ledgerTokenJSON is a token with the proof of its history.
type ledgerTokenJSON struct {
	ID                   string          `json:"id"`
	Account              relay.AccountID `json:"account"`
	AccountName          string          `json:"account_name"`
	Ledger               string          `json:"ledger"`
	CreatedAt            string          `json:"created_at"`
	ExpiresAt            *string         `json:"expires_at"` // null means never
	Claimed              int64           `json:"claimed"`
	Remaining            *int64          `json:"remaining"`     // null means without limit
	RequiresPrivateToken bool            `json:"needs_private"` // a claim must also present the private token
	Metadata             json.RawMessage `json:"metadata"`      // null if there is none
	Head                 headJSON        `json:"head"`
	All                  string          `json:"all"` // the signed statement that Entries is complete
	Entries              []provenJSON    `json:"entries"`
}

// headJSON is the signed head of a ledger.
type headJSON struct {
	Origin     string `json:"origin"`
	Size       int64  `json:"size"`
	Root       string `json:"root"` // base64
	Checkpoint string `json:"checkpoint"`
	Key        string `json:"key"` // verifies the checkpoint
}

// provenJSON is an entry with its inclusion proof.
type provenJSON struct {
	ledgerEntryJSON
	Leaf  string   `json:"leaf"`  // the text of the leaf
	Proof []string `json:"proof"` // hashes in base64, from the leaf to the root
}

// getLedgerToken answers with a token and the proof of its history.
func (s *Surface) getLedgerToken(c *fiber.Ctx, sel *selection) error {
	ctx := c.UserContext()
	acct := sel.requiredAccount()
	if err := sel.Err(); err != nil {
		return err
	}
	t, h, err := s.Ledgers.Inspect(ctx, acct, params.Path(c, "token_id"))
	if err != nil {
		return err
	}
	names, err := s.accountNames(ctx)
	if err != nil {
		return err
	}
	view := ledgerTokenJSON{
		ID: t.ID, Account: acct, AccountName: names[acct], Ledger: t.Ledger, CreatedAt: formatTime(t.CreatedAt), ExpiresAt: formatTimeOrNil(t.ExpiresAt),
		Claimed: t.Claimed, Remaining: t.Remaining(), RequiresPrivateToken: t.PrivateID != "", Metadata: t.Metadata,
		Head: headJSON{h.Head.Origin, h.Head.Size, h.Head.Root.String(), h.Meta.Signature, h.Meta.Key}, All: h.Meta.All, Entries: make([]provenJSON, len(h.Data)),
	}
	for i, e := range h.Data {
		entry := ledgerEntryJSON{e.Sequence, e.Type, *rfc3339(e.At), t.ID, e.Hash, e.Data}
		view.Entries[i] = provenJSON{entry, string(e.Leaf), httpd.Each(h.Meta.Proof[i], merkle.Hash.String)}
	}
	return c.JSON(fiber.Map{"data": view})
}
