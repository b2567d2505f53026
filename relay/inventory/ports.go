package inventory

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/lookup"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sip"
)

// Accounts keeps accounts, their credentials and the merged inventory; it is the
// part of account.Store that an inventory needs.
type Accounts interface {
	Accounts(ctx context.Context) ([]account.Account, error)
	AccountByName(ctx context.Context, name string) (account.Account, error)
	PutAccounts(ctx context.Context, all, read []account.Account) ([]account.ID, error)
	Tokens(ctx context.Context) ([]account.Token, error)
	AddToken(ctx context.Context, t account.Token) error
	PutTokens(ctx context.Context, tokens []account.Token) error
	DeleteToken(ctx context.Context, t account.Token) error
	PutLogin(ctx context.Context, l account.Login) error
	DeleteLogin(ctx context.Context, username string) error
	Inventory(ctx context.Context) ([]byte, error)
	DeclaredSIMs(ctx context.Context, which account.WhichSIMs) ([]account.DeclaredSIM, error)
	PutInventory(ctx context.Context, was, document []byte, sims account.SIMChanges) error
}

// Relays keeps relays.
type Relays interface {
	Get(ctx context.Context, acct account.ID, k inbound.Kind, id string) (inbound.Relay, error)
	// Declare saves a relay, or, of one that exists, what merge returns for it.
	Declare(ctx context.Context, r inbound.Relay, merge func(stored inbound.Relay) inbound.Relay) error
	Delete(ctx context.Context, acct account.ID, k inbound.Kind, id string) error
}

// Devices keeps what decodes, and where devices are.
type Devices interface {
	PutSensorType(ctx context.Context, t iot.SensorType) error
	DeleteSensorType(ctx context.Context, id string) error
	PutLocation(ctx context.Context, acct account.ID, l iot.Location) error
	DeleteLocation(ctx context.Context, acct account.ID, id string) error
	Decoder(ctx context.Context, acct account.ID, id string) (iot.Decoder, error)
	Decoders(ctx context.Context, acct account.ID) ([]iot.Decoder, error)
	CreateDecoder(ctx context.Context, acct account.ID, d iot.Decoder) error
	ChangeDecoder(ctx context.Context, acct account.ID, id string, change func(*iot.Decoder) error) (iot.Decoder, error)
	DeleteDecoder(ctx context.Context, acct account.ID, id string) error
}

// Rules keeps rules.
type Rules interface {
	Rule(ctx context.Context, acct account.ID, id string) (rule.Rule, error)
	Rules(ctx context.Context, acct account.ID) ([]rule.Rule, error)
	// Declare saves a rule under its id, unless keep returns true for the rule that is
	// stored under it, nil for none.
	Declare(ctx context.Context, acct account.ID, r rule.Rule, keep func(stored *rule.Rule) bool) error
	Delete(ctx context.Context, acct account.ID, id string) error
}

// Networks keeps the table of the simulated lookup.
type Networks interface {
	PutNetwork(ctx context.Context, n lookup.Network) error
	DeleteNetwork(ctx context.Context, prefix string) error
}

// Credit is the part of credit.Store that an inventory needs.
type Credit interface {
	Open(ctx context.Context, acct account.ID, credits int64, at time.Time) error
	Set(ctx context.Context, acct account.ID, credits int64, at time.Time) error
	Balance(ctx context.Context, acct account.ID) (int64, error)
}

// Ledgers keeps ledgers.
type Ledgers interface {
	Put(ctx context.Context, acct account.ID, l ledger.Ledger) error
	Delete(ctx context.Context, acct account.ID, id string) error
	Log(ctx context.Context, acct account.ID, id string) (ledger.Log, error)
}

// Trunks keeps where accounts' SIP calls come from.
type Trunks interface {
	PutTrunks(ctx context.Context, acct account.ID, list []sip.Trunk) error
}

// SIMs keeps SIMs.
type SIMs interface {
	// GetMany returns the SIMs that exist.
	GetMany(ctx context.Context, acct account.ID, iccids []sim.ICCID) (map[sim.ICCID]sim.SIM, error)
	Declare(ctx context.Context, acct account.ID, all []sim.SIM, reset bool) error
	Delete(ctx context.Context, acct account.ID, iccid sim.ICCID) error
}
