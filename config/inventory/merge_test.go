package inventory_test

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMergeOfEqualDocumentsChangesNothing(t *testing.T) {
	d := contract(t)
	relaytest.Equal(t, "the merged document", inventory.Merge(d, d), d)
	relaytest.Equal(t, "the omitted document", inventory.Omitted(d, d), inventory.Document{})
}

func TestMergeKeepsOmittedRecords(t *testing.T) {
	oldDocument := contract(t)
	newDocument := parse(t, `
accounts:
  - {name: acme, tokens: [{token: acme-token-0123456}, {token: second-token-0123456}], locations: [{id: loc1, name: Renamed}],
     decoders: [{id: d1, name: Tester, type: other, sensors: [{sensor_type_id: temperature, key: temperature_9}]}]}
  - {name: other}`, inventory.Options{Load: earlier(oldDocument)})
	want := contract(t)
	account := &want.Accounts[0]
	account.Tokens = []inventory.Token{{Token: "acme-token-0123456", Secret: "shh"}, {Token: "second-token-0123456"}}
	account.Locations = []inventory.Location{{ID: "loc1", Name: "Renamed"}}
	account.Decoders = []inventory.Decoder{{ID: "d1", Name: "Tester", Type: "other", Codec: "json", Sensors: []inventory.Mapping{
		{SensorTypeID: "temperature", Key: "temperature_1"}, {SensorTypeID: "temperature", Key: "temperature_9"},
	}}}
	want.Accounts = append(want.Accounts, inventory.Account{Name: "other"})
	relaytest.Equal(t, "the merged document", inventory.Merge(oldDocument, newDocument), want)
}

func TestOmittedHasTheRecordsThatAPruneRemoves(t *testing.T) {
	oldDocument := contract(t)
	oldDocument.Accounts = append(oldDocument.Accounts, inventory.Account{Name: "gone"})
	newDocument := contract(t)
	newDocument.SensorTypes, newDocument.Accounts[0].Relays.VMN, newDocument.Accounts[0].SIMs, newDocument.Accounts[0].SOAP = nil, nil, nil, nil
	newDocument.Accounts[0].Rules = newDocument.Accounts[0].Rules[1:]
	want := inventory.Document{SensorTypes: oldDocument.SensorTypes, Accounts: []inventory.Account{
		{Name: "acme", SOAP: oldDocument.Accounts[0].SOAP, Relays: inventory.Relays{VMN: oldDocument.Accounts[0].Relays.VMN}, SIMs: oldDocument.Accounts[0].SIMs, Rules: oldDocument.Accounts[0].Rules[:1]},
		{Name: "gone"},
	}}
	relaytest.Equal(t, "the omitted document", inventory.Omitted(oldDocument, newDocument), want)
}

func TestSealedAndMaskedShowNoSecret(t *testing.T) {
	d := contract(t)
	sealed := encode(t, inventory.Seal(d))
	for _, secret := range []string{`"acme-token-0123456"`, `"password":"secret"`} {
		if strings.Contains(sealed, secret) {
			t.Errorf("the sealed document shows %s", secret)
		}
	}
	masked := encode(t, inventory.Mask(d))
	for _, secret := range []string{"acme-token-0123456", `"secret":"shh"`, `"password":"secret"`, "whsec_", `"0000"`, `"1111"`, "12345678", "87654321"} {
		if strings.Contains(masked, secret) {
			t.Errorf("the masked document shows %s", secret)
		}
	}
	relaytest.Equal(t, "the argument of Seal and Mask", d, contract(t))
	relaytest.Equal(t, "the document sealed twice", encode(t, inventory.Seal(inventory.Seal(d))), sealed)
	relaytest.Equal(t, "the document masked after sealing", encode(t, inventory.Mask(inventory.Seal(d))), masked)
}

func TestAMaskStandsForTheStoredSecret(t *testing.T) {
	sealed := inventory.Seal(contract(t))
	masked := encode(t, inventory.Mask(sealed))
	relaytest.Equal(t, "the parsed document", parse(t, masked, inventory.Options{Load: earlier(sealed)}), sealed)
}

func TestSealedSecretsHaveTheSameHash(t *testing.T) {
	account := contract(t).Accounts[0]
	sealed := inventory.Seal(contract(t)).Accounts[0]
	relaytest.Equal(t, "the hash of the sealed token", sealed.Tokens[0].Hash(), account.Tokens[0].Hash())
	relaytest.Equal(t, "the hash of the sealed password", sealed.SOAP.Hash(), account.SOAP.Hash())
	relaytest.Equal(t, "the length of a hash", len(account.SOAP.Hash()), 64)
}

func TestAPasswordHashIsNotHashedAgain(t *testing.T) {
	const hash = "$argon2id$v=19$m=64,t=1,p=1$c2FsdA$a2V5"
	d := contract(t)
	d.Accounts[0].SOAP.Password = hash
	relaytest.Equal(t, "the sealed password", inventory.Seal(d).Accounts[0].SOAP.Password, hash)
	masked := encode(t, inventory.Mask(d))
	if strings.Contains(masked, "argon2id") {
		t.Errorf("the masked document shows %s", hash)
	}
	got := parse(t, masked, inventory.Options{Load: earlier(inventory.Seal(d))})
	relaytest.Equal(t, "the parsed password", got.Accounts[0].SOAP.Password, hash)
}
