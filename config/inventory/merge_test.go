package inventory_test

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMergeOfTheSameChangesNothing(t *testing.T) {
	d := contract(t)
	relaytest.Equal(t, "the merged document", inventory.Merge(d, d), d)
	relaytest.Equal(t, "what is omitted", inventory.Omitted(d, d), inventory.Document{})
}

func TestMergeKeepsWhatIsOmitted(t *testing.T) {
	old := contract(t)
	fresh := parse(t, `
accounts:
  - {name: acme, tokens: [{token: acme-token-0123456}, {token: second-token-0123456}], locations: [{id: loc1, name: Renamed}],
     decoders: [{id: d1, name: Tester, type: other, sensors: [{sensor_type_id: temperature, key: temperature_9}]}]}
  - {name: other}`, inventory.Options{Load: earlier(old)})
	want := contract(t)
	a := &want.Accounts[0]
	a.Tokens = []inventory.Token{{Token: "acme-token-0123456", Secret: "shh"}, {Token: "second-token-0123456"}}
	a.Locations = []inventory.Location{{ID: "loc1", Name: "Renamed"}}
	a.Decoders = []inventory.Decoder{{ID: "d1", Name: "Tester", Type: "other", Codec: "json", Sensors: []inventory.Mapping{
		{SensorTypeID: "temperature", Key: "temperature_1"}, {SensorTypeID: "temperature", Key: "temperature_9"},
	}}}
	want.Accounts = append(want.Accounts, inventory.Account{Name: "other"})
	relaytest.Equal(t, "the merged document", inventory.Merge(old, fresh), want)
}

func TestOmittedNamesWhatAPruneRemoves(t *testing.T) {
	old := contract(t)
	old.Accounts = append(old.Accounts, inventory.Account{Name: "gone"})
	fresh := contract(t)
	fresh.SensorTypes, fresh.Accounts[0].Relays.VMN, fresh.Accounts[0].SIMs, fresh.Accounts[0].SOAP = nil, nil, nil, nil
	fresh.Accounts[0].Rules = fresh.Accounts[0].Rules[1:]
	want := inventory.Document{SensorTypes: old.SensorTypes, Accounts: []inventory.Account{
		{Name: "acme", SOAP: old.Accounts[0].SOAP, Relays: inventory.Relays{VMN: old.Accounts[0].Relays.VMN}, SIMs: old.Accounts[0].SIMs, Rules: old.Accounts[0].Rules[:1]},
		{Name: "gone"},
	}}
	relaytest.Equal(t, "what is omitted", inventory.Omitted(old, fresh), want)
}

func TestSealedAndMaskedShowNoSecret(t *testing.T) {
	d := contract(t)
	sealed := encode(t, inventory.Seal(d))
	for _, secret := range []string{`"acme-token-0123456"`, `"password":"secret"`} {
		if strings.Contains(sealed, secret) {
			t.Errorf("sealed shows %s", secret)
		}
	}
	masked := encode(t, inventory.Mask(d))
	for _, secret := range []string{"acme-token-0123456", `"secret":"shh"`, `"password":"secret"`, "whsec_", `"0000"`, `"1111"`, "12345678", "87654321"} {
		if strings.Contains(masked, secret) {
			t.Errorf("masked shows %s", secret)
		}
	}
	relaytest.Equal(t, "the document itself", d, contract(t))
	relaytest.Equal(t, "the document sealed twice", encode(t, inventory.Seal(inventory.Seal(d))), sealed)
	relaytest.Equal(t, "the document masked after sealing", encode(t, inventory.Mask(inventory.Seal(d))), masked)
}

func TestMaskHandedBackLeavesTheSecret(t *testing.T) {
	sealed := inventory.Seal(contract(t))
	back := encode(t, inventory.Mask(sealed))
	relaytest.Equal(t, "the document that was handed back", parse(t, back, inventory.Options{Load: earlier(sealed)}), sealed)
}

func TestHashIsTheSameSealedOrNot(t *testing.T) {
	d := contract(t).Accounts[0]
	s := inventory.Seal(contract(t)).Accounts[0]
	relaytest.Equal(t, "the hash of the sealed token", s.Tokens[0].Hash(), d.Tokens[0].Hash())
	relaytest.Equal(t, "the hash of the sealed password", s.SOAP.Hash(), d.SOAP.Hash())
	relaytest.Equal(t, "the length of a hash", len(d.SOAP.Hash()), 64)
}

func TestAStretchedPasswordStaysSo(t *testing.T) {
	const kept = "$argon2id$v=19$m=64,t=1,p=1$c2FsdA$a2V5"
	d := contract(t)
	d.Accounts[0].SOAP.Password = kept
	relaytest.Equal(t, "the sealed password", inventory.Seal(d).Accounts[0].SOAP.Password, kept)
	back := encode(t, inventory.Mask(d))
	if strings.Contains(back, "argon2id") {
		t.Errorf("masked shows %s", kept)
	}
	got := parse(t, back, inventory.Options{Load: earlier(inventory.Seal(d))})
	relaytest.Equal(t, "the password that was handed back", got.Accounts[0].SOAP.Password, kept)
}
