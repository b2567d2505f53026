package main_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/penstock/penstock/"

// testSupport lists the packages that all tests and packages for tests may import: the helpers of
// tests, and the servers that tests share with make bench and make chaos.
func testSupport() []string { return []string{"relay/relaytest", "deploy/servers"} }

// topLevel lists the folders that may have Go code.
func topLevel() []string {
	return []string{"cmd", "config", "decoders", "delivery", "deploy", "ingest", "relay"}
}

// directions lists the folders of this module that each folder may import. For a package, the
// longest matching folder applies. A folder may always import its subfolders.
func directions() map[string][]string {
	return map[string][]string{
		"cmd":      {"config", "decoders", "delivery", "deploy/grafana", "ingest", "relay"},
		"deploy":   {},
		"config":   {},
		"decoders": {},
		"delivery": {"decoders", "relay"},
		"ingest":   {"decoders", "relay"},
		// The admin API imports no other surface. It passes inventory documents to relay/inventory.
		"ingest/admin": {"config/inventory", "decoders", "ingest/httpd", "ingest/intake", "relay"},
		// The console calls the APIs from the browser.
		"ingest/console": {},

		"relay": {},
		// The stores of all domains use the database.
		"relay/db":        {"relay", "relay/porttest"},
		"relay/account":   {"relay", "relay/db"},
		"relay/gateway":   {"relay", "relay/db"},
		"relay/file":      {"relay", "relay/db"},
		"relay/event":     {"decoders", "relay", "relay/account", "relay/db", "relay/job", "relay/outbox"},
		"relay/credit":    {"relay", "relay/account", "relay/db"},
		"relay/job":       {"decoders", "relay", "relay/account", "relay/db", "relay/event", "relay/outbox"},
		"relay/outbox":    {"decoders", "relay", "relay/account", "relay/db", "relay/event", "relay/job", "relay/tracing"},
		"relay/user":      {"relay", "relay/account", "relay/db"},
		"relay/audit":     {"relay", "relay/account", "relay/db", "relay/outbox"},
		"relay/template":  {},
		"relay/condition": {"config/strict", "decoders"}, // config/strict suggests names
		"relay/tracing":   {},
		"relay/message":   domain(),
		"relay/inbound":   domain(),
		"relay/lookup":    domain(),
		"relay/sip":       domain(),
		"relay/sim":       domain(),
		"relay/iot":       domain(),
		"relay/ledger":    domain(),
		// Jobs that change SIMs at the operator.
		"relay/provisioning": append(domain(), "relay/sim"),
		// Usage is counted for SIMs and pools, and limited.
		"relay/usage": append(domain(), "relay/sim"),
		// Rules are about devices and their readings.
		"relay/rule": append(domain(), "relay/iot"),
		// A dry run compares the present and new states of events.
		"relay/replay": append(domain(), "relay/iot"),
		// An inventory has records of all domains.
		"relay/inventory": append(domain(), "config/inventory", "relay/audit", "relay/inbound", "relay/iot", "relay/ledger", "relay/lookup", "relay/rule", "relay/sim", "relay/sip"),
		"relay/cache":     append(domain(), "relay/iot", "relay/porttest"),
		// The test suite of the records of all domains.
		"relay/recordstest": append(domain(), "relay/audit", "relay/gateway", "relay/inbound", "relay/iot", "relay/ledger", "relay/lookup", "relay/message",
			"relay/porttest", "relay/provisioning", "relay/rule", "relay/sim", "relay/sip", "relay/usage", "relay/user"),
	}
}

// domain lists the folders that a package of a domain may import. Domains do not import each other.
func domain() []string {
	return []string{"decoders", "relay", "relay/account", "relay/condition", "relay/credit", "relay/db", "relay/event", "relay/job", "relay/outbox", "relay/template", "relay/tracing"}
}

// libraries lists the folders that may import each third-party library. Tests may import all listed
// libraries. No file may import an unlisted library.
func libraries() map[string][]string {
	return map[string][]string{
		"github.com/gofiber/fiber":                 {"ingest"},
		"github.com/valyala/fasthttp":              {"delivery/httpout", "ingest", "deploy/bench"},
		"github.com/redis/go-redis":                {"relay/cache"},
		"github.com/jackc/pgx":                     {"relay/db", "deploy/bench", "deploy/servers"},
		"github.com/pressly/goose":                 {"relay/db"},
		"github.com/hibiken/asynq":                 {"delivery/queue/timer"},
		"github.com/expr-lang/expr":                {"decoders/script", "relay/condition"},
		"github.com/dop251/goja":                   {"decoders/script"},
		"github.com/emersion/go-smtp":              {"delivery/email", "deploy/chaos"},
		"github.com/emersion/go-sasl":              {"delivery/email"},
		"github.com/emersion/go-message":           {"delivery/email"},
		"github.com/emersion/go-msgauth":           {"delivery/email"},
		"github.com/influxdata/influxdb-client-go": {"delivery/influx"},
		"github.com/tinylib/msgp":                  {"delivery/influx"},
		"github.com/alicebob/miniredis":            {"delivery/embedded"},
		"modernc.org/sqlite":                       {"delivery/embedded", "relay/db", "deploy/bench"},
		"github.com/linxGnu/gosmpp":                {"delivery/carrier/smpp", "deploy/bench", "deploy/chaos"},
		"github.com/warthog618/sms":                {"decoders/sms"},
		"go.yaml.in/yaml":                          {"config"},
		"github.com/alecthomas/kong":               {"cmd"},
		"github.com/tink-crypto/tink-go":           {"relay/ledger/vault"},
		"golang.org/x/crypto":                      {"relay/account"},
		"golang.org/x/term":                        {"cmd"},
		"golang.org/x/oauth2":                      {"delivery/oidc"},
		"github.com/coreos/go-oidc":                {"delivery/oidc"},
		"go.opentelemetry.io/proto":                {"delivery/telemetry"},
		"google.golang.org/protobuf":               {"delivery/telemetry"},
		"golang.org/x/mod/sumdb":                   {"relay/ledger/merkle"},
		"github.com/CycloneDX/cyclonedx-go":        {"deploy/release"},
		"code.dny.dev/ssrf":                        {"delivery/guard"},
		"github.com/getkin/kin-openapi":            {"ingest/openapi"},
		"github.com/google/go-cmp":                 {"relay/iot/iottest", "relay/relaytest"},
		"github.com/prometheus/client_golang":      {"cmd", "ingest/admin"},
		"golang.org/x/net/http/httpguts":           {"delivery/httpout"},
		"golang.org/x/net/idna":                    {"delivery/guard"},
		"golang.org/x/sync":                        {"ingest/intake", "relay/inventory", "relay/iot", "relay/lookup"},
		"golang.org/x/sys":                         {"delivery/codec", "ingest/journal"},
		"golang.org/x/text":                        {"delivery/carrier/smpp", "ingest/carrier", "ingest/soap"},
		// For tests only.
		"github.com/chromedp":                   {},
		"github.com/influxdata/line-protocol":   {},
		"github.com/rogpeppe/go-internal":       {},
		"github.com/santhosh-tekuri/jsonschema": {},
		"github.com/standard-webhooks":          {},
		"golang.org/x/net/dns/dnsmessage":       {},
		"pgregory.net/rapid":                    {},
	}
}

// file is a Go file with its imports.
type file struct {
	path    string // relative to the module, with slashes
	imports []string
}

func (f file) dir() string { return path.Dir(f.path) }

// isTest reports whether only tests use a file: a file of tests, of the harness of the end-to-end
// tests, or of the program that starts the servers of tests.
func (f file) isTest() bool {
	return strings.HasSuffix(f.path, "_test.go") || inFolder(f.dir(), "cmd/penstock/e2e") || inFolder(f.dir(), "deploy/testservers")
}

func TestImportsFollowTheDirections(t *testing.T) {
	files := goFiles(t, filepath.Join("..", ".."))
	if len(files) < 20 {
		t.Fatalf("found %d Go files, want at least 20", len(files))
	}
	for _, f := range files {
		for _, violation := range violations(f) {
			t.Error(violation)
		}
	}
}

// TestImportsAreAtMostEightDeep follows the longest chain of imports from package main.
func TestImportsAreAtMostEightDeep(t *testing.T) {
	imports := make(map[string][]string)
	for _, f := range goFiles(t, filepath.Join("..", "..")) {
		for _, imported := range f.imports {
			if pkg, ok := strings.CutPrefix(imported, module); ok && !f.isTest() {
				imports[f.dir()] = append(imports[f.dir()], pkg)
			}
		}
	}
	longest := make(map[string][]string)
	var chain func(dir string) []string
	chain = func(dir string) []string {
		if cached, ok := longest[dir]; ok {
			return cached
		}
		var longestImport []string
		for _, d := range imports[dir] {
			if c := chain(d); len(c) > len(longestImport) {
				longestImport = c
			}
		}
		longest[dir] = append([]string{dir}, longestImport...)
		return longest[dir]
	}
	if got := chain("cmd/penstock"); len(got) < 4 || len(got) > 8 {
		t.Errorf("the longest chain has %d packages, want 4 to 8: %s", len(got), strings.Join(got, " > "))
	}
}

// violations lists the violations of a file: its folder and its imports.
func violations(f file) []string {
	var messages []string
	if top, _, _ := strings.Cut(f.path, "/"); !slices.Contains(topLevel(), top) {
		messages = append(messages, fmt.Sprintf("%s: Go code outside the folders of topLevel", f.path))
	}
	for _, imported := range f.imports {
		if pkg, ok := strings.CutPrefix(imported, module); ok {
			if !mayImport(f, pkg) {
				messages = append(messages, fmt.Sprintf("%s: imports %s, which directions does not allow", f.path, pkg))
			}
			continue
		}
		if library, open := libraryOf(f, imported); !open {
			messages = append(messages, fmt.Sprintf("%s: imports %s, which libraries does not allow", f.path, library))
		}
	}
	return messages
}

// mayImport reports whether a file may import a package of this module. Tests may also import
// sibling packages, except ingest from delivery and delivery from ingest. Only cmd imports config.
func mayImport(f file, pkg string) bool {
	if slices.Contains(testSupport(), pkg) && (f.isTest() || strings.HasSuffix(f.dir(), "test")) {
		return true
	}
	if f.isTest() && !inFolder(pkg, "cmd") {
		between := inFolder(f.dir(), "ingest") && inFolder(pkg, "delivery") || inFolder(f.dir(), "delivery") && inFolder(pkg, "ingest")
		leaf := inFolder(f.dir(), "decoders") && !inFolder(pkg, "decoders") || inFolder(f.dir(), "config") && !inFolder(pkg, "config")
		return !between && !leaf
	}
	rule, allowed := ruleFor(f.dir())
	if inFolder(pkg, rule) && rule != "relay" || pkg == f.dir() {
		return true
	}
	return slices.ContainsFunc(allowed, func(a string) bool {
		if a == "relay" && !mayImportAllOfRelay(f.dir()) {
			return pkg == "relay" // without its subfolders
		}
		return inFolder(pkg, a)
	})
}

// mayImportAllOfRelay reports whether a folder may import the subfolders of relay.
func mayImportAllOfRelay(dir string) bool { return !inFolder(dir, "relay") }

func ruleFor(dir string) (rule string, allowed []string) {
	for r, a := range directions() {
		if inFolder(dir, r) && len(r) > len(rule) {
			rule, allowed = r, a
		}
	}
	return rule, allowed
}

// libraryOf returns the library of an import, and whether the file may import that library. Paths of
// the standard library have no dot in their first element.
func libraryOf(f file, imported string) (library string, open bool) {
	for lib, folders := range libraries() {
		if !inFolder(imported, lib) {
			continue
		}
		return lib, f.isTest() || slices.ContainsFunc(folders, func(d string) bool { return inFolder(f.dir(), d) })
	}
	host, _, _ := strings.Cut(imported, "/")
	return imported, !strings.Contains(host, ".")
}

func inFolder(dir, folder string) bool { return dir == folder || strings.HasPrefix(dir, folder+"/") }

// goFiles parses the imports of all Go files. It does not run go list: go test would reuse a cached
// result after a change of the files.
func goFiles(t *testing.T, root string) []file {
	t.Helper()
	var files []file
	err := filepath.WalkDir(root, func(p string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && p != root && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"bin", "data", "node_modules", "testdata"}, entry.Name())):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(p, ".go"):
			return nil
		}
		f, err := parseFile(root, p)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func parseFile(root, name string) (file, error) {
	relative, err := filepath.Rel(root, name)
	if err != nil {
		return file{}, err
	}
	source, err := os.ReadFile(name)
	if err != nil {
		return file{}, err
	}
	tree, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
	if err != nil {
		return file{}, err
	}
	parsed := file{path: filepath.ToSlash(relative)}
	for _, spec := range tree.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return file{}, err
		}
		parsed.imports = append(parsed.imports, imported)
	}
	return parsed, nil
}

func TestForbiddenImportsAreViolations(t *testing.T) {
	for name, tc := range map[string]struct {
		path, imports string
		refused       bool
	}{
		"ingest imports the domain":                                  {"ingest/uplink/a.go", module + "relay/iot", false},
		"ingest imports decoders":                                    {"ingest/uplink/a.go", module + "decoders/netserver", false},
		"ingest imports a sibling package":                           {"ingest/uplink/a.go", module + "ingest/httpd", false},
		"ingest imports delivery":                                    {"ingest/uplink/a.go", module + "delivery/queue", true},
		"a test in ingest imports delivery":                          {"ingest/uplink/a_test.go", module + "delivery/queue", true},
		"delivery imports ingest":                                    {"delivery/queue/a.go", module + "ingest/journal", true},
		"a test in delivery imports ingest":                          {"delivery/queue/a_test.go", module + "ingest/journal", true},
		"delivery imports its own part":                              {"delivery/worker/a.go", module + "delivery/httpout", false},
		"delivery imports the domain":                                {"delivery/queue/a.go", module + "relay/outbox", false},
		"delivery imports config":                                    {"delivery/queue/a.go", module + "config", true},
		"ingest imports the inventory document":                      {"ingest/iotapi/a.go", module + "config/inventory", true},
		"the admin surface imports the inventory document":           {"ingest/admin/a.go", module + "config/inventory", false},
		"the admin surface imports the settings":                     {"ingest/admin/a.go", module + "config", true},
		"the admin surface imports another surface":                  {"ingest/admin/a.go", module + "ingest/carrier", true},
		"the admin surface imports the intake":                       {"ingest/admin/a.go", module + "ingest/intake", false},
		"the domain of the inventory imports the inventory document": {"relay/inventory/a.go", module + "config/inventory", false},
		"the domain of the inventory imports the settings":           {"relay/inventory/a.go", module + "config", true},
		"a sibling imports the domain of the inventory":              {"relay/iot/a.go", module + "relay/inventory", true},
		"the console imports the admin surface":                      {"ingest/console/a.go", module + "ingest/admin", true},
		"a test of the console imports the admin surface":            {"ingest/console/a_test.go", module + "ingest/admin", false},
		"the console imports fiber":                                  {"ingest/console/a.go", "github.com/gofiber/fiber/v2", false},
		"the program drives a browser":                               {"cmd/penstock/a.go", "github.com/chromedp/chromedp", true},
		"a test drives a browser":                                    {"cmd/penstock/a_test.go", "github.com/chromedp/chromedp", false},
		"the end-to-end harness drives a browser":                    {"cmd/penstock/e2e/a.go", "github.com/chromedp/chromedp", false},
		"the end-to-end harness imports the program":                 {"cmd/penstock/e2e/a.go", module + "cmd/penstock/app", false},
		"the end-to-end harness imports test support":                {"cmd/penstock/e2e/a.go", module + "relay/relaytest", false},
		"package relay imports a domain":                             {"relay/a.go", module + "relay/iot", true},
		"a domain imports ingest":                                    {"relay/iot/a.go", module + "ingest/journal", true},
		"a domain imports delivery":                                  {"relay/iot/a.go", module + "delivery", true},
		"a domain imports config":                                    {"relay/account/a.go", module + "config/inventory", true},
		"a domain imports another domain":                            {"relay/iot/a.go", module + "relay/message", true},
		"a part of a domain imports another domain":                  {"relay/iot/iottest/a.go", module + "relay/message", true},
		"a part of a domain imports its domain":                      {"relay/iot/iottest/a.go", module + "relay/iot", false},
		"a domain imports the outbox":                                {"relay/inbound/a.go", module + "relay/outbox", false},
		"a domain imports package relay":                             {"relay/inbound/a.go", module + "relay", false},
		"a domain imports the database":                              {"relay/inbound/a.go", module + "relay/db", false},
		"the database imports a domain":                              {"relay/db/a.go", module + "relay/account", true},
		"a part of the database imports a domain":                    {"relay/db/dbtest/a.go", module + "relay/account", true},
		"the outbox imports accounts":                                {"relay/outbox/a.go", module + "relay/account", false},
		"accounts import the outbox":                                 {"relay/account/a.go", module + "relay/outbox", true},
		"the outbox imports a domain":                                {"relay/outbox/a.go", module + "relay/inbound", true},
		"a test of decoders imports the test support":                {"decoders/sms/a_test.go", module + "relay/relaytest", false},
		"the suite of a store imports the test support":              {"relay/iot/iottest/a.go", module + "relay/relaytest", false},
		"a domain imports the test support":                          {"relay/iot/a.go", module + "relay/relaytest", true},
		"rules import devices":                                       {"relay/rule/a.go", module + "relay/iot", false},
		"an unlisted domain":                                         {"relay/billing/a.go", module + "relay/iot", true},
		"decoders import the domain":                                 {"decoders/sms/a.go", module + "relay", true},
		"a test of decoders imports the domain":                      {"decoders/sms/a_test.go", module + "relay", true},
		"decoders import decoders":                                   {"decoders/catalog/a.go", module + "decoders/cayenne", false},
		"config imports the domain":                                  {"config/inventory/a.go", module + "relay", true},
		"config imports config":                                      {"config/inventory/a.go", module + "config/strict", false},
		"the program imports all":                                    {"cmd/penstock/app/core.go", module + "delivery/queue", false},
		"the program is imported":                                    {"ingest/admin/a_test.go", module + "cmd/penstock", true},
		"code in another folder":                                     {"util/a.go", "fmt", true},
		"code in the top folder":                                     {"main.go", "fmt", true},
		"fiber in its folder":                                        {"ingest/restv2/a.go", "github.com/gofiber/fiber/v2", false},
		"fiber in the domain":                                        {"relay/iot/a.go", "github.com/gofiber/fiber/v2/middleware/cors", true},
		"go-redis outside the cache":                                 {"delivery/queue/a.go", "github.com/redis/go-redis/v9", true},
		"go-redis in a test":                                         {"delivery/queue/a_test.go", "github.com/redis/go-redis/v9", false},
		"asynq outside the queue":                                    {"delivery/worker/a.go", "github.com/hibiken/asynq", true},
		"asynq in the queue":                                         {"delivery/queue/a.go", "github.com/hibiken/asynq", true},
		"asynq in its folder":                                        {"delivery/queue/timer/a.go", "github.com/hibiken/asynq", false},
		"a library of a similar name":                                {"delivery/worker/a.go", "github.com/hibiken/asynqmon", true},
		"an unlisted library":                                        {"relay/iot/a.go", "github.com/google/uuid", true},
		"an unlisted library in a test":                              {"relay/iot/a_test.go", "github.com/google/uuid", true},
		"the standard library":                                       {"relay/iot/a.go", "net/http", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := violations(file{path: tc.path, imports: []string{tc.imports}})
			if (len(got) > 0) != tc.refused {
				t.Errorf("violations = %q, want any: %v", got, tc.refused)
			}
		})
	}
}
