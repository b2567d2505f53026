package inventory_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/config/inventory"
)

func TestMergeOfTheSameChangesNothing(t *testing.T) {
	d := contract(t)
	if got := inventory.Merge(d, d); !reflect.DeepEqual(got, d) {
		t.Errorf("got %+v", got)
	}
	if gone := inventory.Omitted(d, d); !reflect.DeepEqual(gone, inventory.Document{}) {
		t.Errorf("omitted %+v", gone)
	}
}

func TestMergeKeepsWhatIsOmitted(t *testing.T) {
	old := contract(t)
	fresh := parse(t, `
accounts:
  - {name: acme, tokens: [{token: acme-token-0123456}, {token: second-token-0123456}], locations: [{id: loc1, name: Renamed}],
     decoders: [{id: d1, name: Tester, type: other, sensors: [{sensor_type_id: temperature, key: temperature_9}]}]}
  - {name: other}`, inventory.Options{Known: old})
	want := contract(t)
	a := &want.Accounts[0]
	a.Tokens = []inventory.Token{{Token: "acme-token-0123456", Secret: "shh"}, {Token: "second-token-0123456"}}
	a.Locations = []inventory.Location{{ID: "loc1", Name: "Renamed"}}
	a.Decoders = []inventory.Decoder{{ID: "d1", Name: "Tester", Type: "other", Codec: "json", Sensors: []inventory.Mapping{
		{SensorTypeID: "temperature", Key: "temperature_1"}, {SensorTypeID: "temperature", Key: "temperature_9"},
	}}}
	want.Accounts = append(want.Accounts, inventory.Account{Name: "other"})
	if got := inventory.Merge(old, fresh); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", encode(t, got), encode(t, want))
	}
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
	if got := inventory.Omitted(old, fresh); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", encode(t, got), encode(t, want))
	}
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
	if d.Accounts[0].Tokens[0].Token != "acme-token-0123456" {
		t.Error("the document itself was changed")
	}
	if again := encode(t, inventory.Seal(inventory.Seal(d))); again != sealed {
		t.Errorf("sealed twice: %s", again)
	}
	if hidden := encode(t, inventory.Mask(inventory.Seal(d))); hidden != masked {
		t.Errorf("masked after sealing:\n%s\nbefore:\n%s", hidden, masked)
	}
}

func TestMaskHandedBackLeavesTheSecret(t *testing.T) {
	sealed := inventory.Seal(contract(t))
	back := encode(t, inventory.Mask(sealed))
	if got := parse(t, back, inventory.Options{Known: sealed}); !reflect.DeepEqual(got, sealed) {
		t.Errorf("got\n%s\nwant\n%s", encode(t, got), encode(t, sealed))
	}
}

func TestHashIsTheSameSealedOrNot(t *testing.T) {
	d := contract(t).Accounts[0]
	s := inventory.Seal(contract(t)).Accounts[0]
	if d.Tokens[0].Hash() != s.Tokens[0].Hash() || d.SOAP.Hash() != s.SOAP.Hash() || len(d.SOAP.Hash()) != 64 {
		t.Errorf("%s, %s", d.Tokens[0].Hash(), s.Tokens[0].Hash())
	}
}

func TestAStretchedPasswordStaysSo(t *testing.T) {
	const kept = "$argon2id$v=19$m=64,t=1,p=1$c2FsdA$a2V5"
	d := contract(t)
	d.Accounts[0].SOAP.Password = kept
	if got := inventory.Seal(d).Accounts[0].SOAP.Password; got != kept {
		t.Errorf("sealed as %s", got)
	}
	back := encode(t, inventory.Mask(d))
	if strings.Contains(back, "argon2id") {
		t.Errorf("masked shows %s", kept)
	}
	if got := parse(t, back, inventory.Options{Known: inventory.Seal(d)}); got.Accounts[0].SOAP.Password != kept {
		t.Errorf("unmasked to %s", got.Accounts[0].SOAP.Password)
	}
}
