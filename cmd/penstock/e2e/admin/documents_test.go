package admin

import (
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

const teamA = `
document: site-a
sensor_types: [{id: soil, name: Soil moisture, metric_units: "%"}]
accounts:
  - name: acme
    tokens: [{token: acme-team-a-0123456}]
    decoders: [{id: soil-probe, name: Soil probe, type: other, sensors: [{sensor_type_id: soil, key: soil}]}]
    relays: {vmn: [{id: v-a, number: "447860000101", action: email, parameters: [desk@example.com]}]}
  - name: globex
    tokens: [{token: globex-team-a-0123456}]
`

const teamB = `
document: site-b
accounts:
  - name: acme
    decoders: [{id: tank, name: Tank, type: other, sensors: [{sensor_type_id: soil, key: level}]}]
    relays: {geo: [{id: g-b, prefix: "447861", action: black_hole}]}
`

// testDocuments applies the documents of two teams with the commands of the program.
func testDocuments(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, `accounts: [{name: initech, tokens: [{token: initech-all-0123456}]}]`)
	run := func(document string, flags ...string) e2e.Result {
		return g.RunCommand(document, append([]string{"apply", "-f", "-"}, flags...)...)
	}
	apply := func(document string, flags ...string) string {
		t.Helper()
		got := run(document, flags...)
		if got.Code != 0 {
			t.Fatalf("apply %q: exit code = %d, want 0: %s", flags, got.Code, got.Stderr)
		}
		return got.Stdout
	}
	expectRefusal := func(document string, words []string, flags ...string) {
		t.Helper()
		run(document, flags...).Mentions(t, 1, words...)
	}
	checkLines := func(text string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("line %q is missing in\n%s", line, text)
			}
		}
	}
	acme := g.WithToken("acme-team-a-0123456")
	v2 := g.XAuth("acme-team-a-0123456")

	t.Run("a dry run lists the additions and changes nothing", func(t *testing.T) {
		oldInventory := exportInventory(g)
		checkLines(apply(teamA, "--dry-run"), "added    sensor type soil", "added    account acme: decoder soil-probe", "document site-a: 7 added, 0 changed, 0 removed, 0 kept (dry run, nothing changed)")
		relaytest.Equal(t, "the inventory", exportInventory(g), oldInventory)
		acme.Get("/iot/decoders").Mentions(t, 401)
	})
	t.Run("an apply lists its additions and changes", func(t *testing.T) {
		checkLines(apply(teamA), "added    account acme: vmn relay v-a", "document site-a: 7 added, 0 changed, 0 removed, 0 kept (applied)")
		checkLines(apply(teamB), "added    account acme: decoder tank", "document site-b: 2 added, 0 changed, 0 removed, 0 kept (applied)")
		checkLines(apply(strings.Replace(teamA, "name: Soil probe", "name: Probe", 1)), "changed  account acme: decoder soil-probe", "document site-a: 0 added, 1 changed, 0 removed, 0 kept (applied)")
		apply(teamA)
	})
	t.Run("a prune of one document keeps the records of other documents", func(t *testing.T) {
		oldInventory := exportInventory(g)
		checkLines(apply(teamB, "--prune"), "document site-b: 0 added, 0 changed, 0 removed, 0 kept (applied)")
		relaytest.Equal(t, "the inventory", exportInventory(g), oldInventory)
		acme.Get("/iot/decoders").Mentions(t, 200, "soil-probe", "tank")
		g.WithToken("globex-team-a-0123456").Get("/iot/devices").Expect(t, 200, `{"data": []}`)
		g.WithToken("initech-all-0123456").Get("/iot/devices").Expect(t, 200, `{"data": []}`)
	})
	t.Run("a record of another document is refused with the name of that document", func(t *testing.T) {
		expectRefusal(strings.Replace(teamA, "site-a", "site-c", 1), []string{`sensor_types[0]: sensor type soil belongs to the document "site-a"`, `account acme: decoder soil-probe belongs to the document "site-a"`})
	})
	t.Run("an empty document removes nothing without --allow-removals", func(t *testing.T) {
		const empty = "document: site-b"
		expectRefusal(empty, []string{"2 of 2 records", `"site-b"`, "allow 2"}, "--prune")
		expectRefusal(empty, []string{"allow 2"}, "--prune", "--allow-removals", "1")
		checkLines(apply(empty, "--prune", "--dry-run"), "removed  account acme: decoder tank", "the prune requires --allow-removals 2")
		acme.Get("/iot/decoders").Mentions(t, 200, "tank")
		checkLines(apply(empty, "--prune", "--allow-removals", "2"), "removed  account acme: geo relay g-b", "document site-b: 0 added, 0 changed, 2 removed, 0 kept (applied)")
		acme.Get("/iot/decoders/tank").Expect(t, 404, "")
		acme.Get("/iot/decoders").Mentions(t, 200, "soil-probe")
	})
	t.Run("accounts are named on the command line", func(t *testing.T) {
		for _, name := range []string{"acme", "2"} {
			g.RunCommand("", "dashboard", "--decoder", "soil-probe", "--account", name).Mentions(t, 0, "Soil moisture")
			g.Admin().Post("/admin/decoders/try", `{"account": "`+name+`", "decoder_id": "soil-probe", "frames": [{"values": {"soil": 4}}]}`).Mentions(t, 200, `"account":2`, `"key":"soil"`)
			g.Admin().Post("/admin/relays/explain", `{"account": "`+name+`", "from": "447700900123", "to": "447860000101", "text": "hi"}`).Mentions(t, 200, "v-a")
			got := g.RunCommand("", "replay", "events", "--account", name)
			got.Mentions(t, 0)
			relaytest.Equal(t, "the output of the replay of "+name, got.Stdout, "0 events\n")
		}
		g.RunCommand("", "replay", "events", "--account", "nobody").Mentions(t, 1, `account: There is no account named "nobody".`)
	})
	t.Run("an apply of an export changes nothing", func(t *testing.T) {
		v2.Do("PATCH", "/v2/sms-relay/vmn/v-a", `{"action": "inactive"}`).Mentions(t, 200)
		g.RunCommand("", "export").Mentions(t, 1, "must be one of default, site-a")
		got := g.RunCommand("", "export", "--document", "site-a")
		checkLines(got.Stdout, "document: site-a", "          action: inactive", `          number: "447860000101"`)
		const nothing = "document site-a: 0 added, 0 changed, 0 removed, 0 kept"
		checkLines(apply(got.Stdout, "--prune", "--dry-run"), nothing+" (dry run, nothing changed)")
		checkLines(apply(got.Stdout, "--prune"), nothing+" (applied)")
		v2.Get("/v2/sms-relay/vmn/v-a").Mentions(t, 200, "inactive")
	})
	t.Run("--json prints the answer as JSON", func(t *testing.T) {
		if output := apply(teamA, "--dry-run", "--json"); !strings.Contains(output, `"dry_run":true`) {
			t.Errorf("output = %s, want JSON with dry_run", output)
		}
	})
	t.Run("a document adopts the records of another document", func(t *testing.T) {
		checkLines(apply(strings.Replace(teamA, "site-a", "site-c", 1), "--adopt"), "changed  account acme: decoder soil-probe (from site-a)", "changed  account globex (from site-a)")
		expectRefusal(teamA, []string{`belongs to the document "site-c"`})
	})
}

// TestExampleInventoryIsApplied applies the example twice to a gateway without accounts.
func TestExampleInventoryIsApplied(t *testing.T) {
	t.Parallel()
	text := e2e.RepositoryFile(t, "deploy/inventory.example.yaml")
	g := e2e.Start(t, e2e.Embedded(), "accounts: []", "PENSTOCK_EGRESS_ALLOW=")
	const hint = "no account is declared; declare one with: penstock apply -f inventory.yaml"
	if !strings.Contains(g.Logs.String(), hint) {
		t.Errorf("log = %s, want %q in it", g.Logs.Tail(20), hint)
	}
	for _, want := range []string{"0 changed, 0 removed, 0 kept", "0 added, 0 changed, 0 removed, 0 kept"} {
		g.RunCommand(text, "apply", "-f", "-", "--prune").Mentions(t, 0, want)
	}
}
