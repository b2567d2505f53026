package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// retired is a word that names used before the project adopted the terms of
// messaging, IoT and Go. It must not be a whole word of an identifier or of a
// file's name.
type retired struct {
	word    string
	instead string
	folders []string // where it is refused; nil: everywhere
	scope   wordScope
}

// wordScope says which names a word is refused in.
type wordScope int

const (
	anyName    wordScope = iota // identifiers and file names, as one of their words
	program                     // the same, but not in tests
	helperName                  // package-level functions outside tests, as the whole name
	typeName                    // types, as the whole name
)

func retiredWords() []retired {
	queues := []string{"delivery/queue", "delivery/submit", "relay/outbox"}
	var list []retired
	add := func(words, instead string, folders []string, scope wordScope) {
		for word := range strings.FieldsSeq(words) {
			list = append(list, retired{word, instead, folders, scope})
		}
	}
	add("flight flights", "dispatcher, or the in-flight set", nil, anyName)
	add("lane lanes", "endpoint queue, carrier queue", nil, anyName)
	add("lodge lodged lodging lodgings", "provisional device", nil, anyName)
	add("held line", "parked, ordered queue", queues, program)
	add("book books", "outcome writer, store", nil, anyName)
	add("alarm alarms", "retry scheduler", queues, anyName)
	add("heed heeds heeded wake wakes woken rouse rouses roused tend tends tended", "schedule, enqueue, notify, release", nil, anyName)
	add("wants wanted", "requested, unassigned", nil, program)
	add("passage passages", "permit", nil, anyName)
	add("enter leave", "acquire, release", queues, program)
	add("insist insists brisk brake brakes", "retry class, backoff, throttle", nil, anyName)
	add("fly flies flew land lands landed", "submit, complete", nil, anyName)
	add("asks knows", "the capability's name: Idempotent", nil, program)
	add("debt debts owed owes bankrupt", "window, pending requests, failed", nil, anyName)
	add("guest guests", "new device", nil, anyName)
	add("lend lends lent crowded", "assign decoder, limit reached", nil, anyName)
	add("stranger strangers", "unknown devices", nil, anyName)
	add("remark remarks", "note", nil, anyName)
	add("foretold foretell rehearsal rehearsals rehearse rehearsed", "preview, dry run", nil, anyName)
	add("guess guesses", "prefetch, cache", nil, anyName)
	add("desk desks", "relay service", nil, anyName)
	add("fate fates", "trace, outcome", nil, anyName)
	add("Follow", "trace", nil, typeName)
	add("Kept", "stored record", nil, typeName)
	add("Gathered", "reassembled message", nil, typeName)
	add("stroll strolls", "scan", nil, anyName)
	add("stretch stretches", "range", nil, anyName)
	add("hole holes", "gap", nil, anyName)
	add("around", "neighbours", nil, program)
	add("shelf shelves", "file store", nil, anyName)
	add("Works", "exports in progress", nil, typeName)
	add("Seal", "signer", nil, typeName)
	add("aside", "dead letter, quarantine", nil, anyName)
	add("doorkeeper doorkeepers", "authenticator", nil, anyName)
	add("silents hush", "idle-connection reaper", nil, anyName)
	add("house", "housekeeping", nil, anyName)
	add("Mark Marks", "event state", nil, typeName)
	add("somebody nobody whoever anybody", "the role: client, sender, worker", nil, program)
	add("text plain clip at moment whole told judge stamp", "say of what: clipReason, parseTimestamp", nil, helperName)
	return list
}

// wordException allows a retired word: in one name, or in all names of a folder.
type wordException struct {
	folder string // or file; "" is everywhere
	name   string // an identifier, or a file name without its ending; "" is any
	word   string // if name is "": the word, or a phrase that ends with it
	reason string
}

func wordExceptions() []wordException {
	return []wordException{
		{"", "", "in flight", "the field's term for requests without a response"},
		{"ingest", "", "guesses", "attempts to guess a secret"},
		{"ingest/httpd", "", "guess", "an attempt to guess a secret"},
		{"relay/inbound", "BlackHole", "", "the action black_hole of the API"},
	}
}

func TestNamesUseTheTermsOfTheField(t *testing.T) {
	names := declaredNames(t, filepath.Join("..", ".."))
	if len(names) < 5000 {
		t.Fatalf("only %d names were found", len(names))
	}
	used := make(map[wordException]bool)
	words, exceptions := retiredWords(), wordExceptions()
	for _, n := range names {
		r, wrong := retiredWordIn(words, n)
		if !wrong {
			continue
		}
		if e, ok := exceptionFor(exceptions, n, r.word); ok {
			used[e] = true
			continue
		}
		t.Errorf("%s: %s: write %s instead of %q", n.position, n.text, r.instead, r.word)
	}
	for _, e := range exceptions {
		if !used[e] {
			t.Errorf("the exception for %q in %q is not needed", e.name+e.word, e.folder)
		}
		if e.reason == "" {
			t.Errorf("the exception for %q in %q has no reason", e.name+e.word, e.folder)
		}
	}
}

// name is a declared identifier or a file's name.
type name struct {
	text     string
	file     string // relative to the module, with slashes
	position string
	kind     nameKind
}

type nameKind int

const (
	otherName nameKind = iota
	topLevelFunction
	typeDeclaration
)

func retiredWordIn(list []retired, n name) (retired, bool) {
	words := wordsOf(n.text)
	for _, r := range list {
		if r.folders != nil && !slices.ContainsFunc(r.folders, func(f string) bool { return within(n.file, f) }) {
			continue
		}
		test := strings.HasSuffix(n.file, "_test.go")
		var wrong bool
		switch r.scope {
		case anyName:
			wrong = slices.Contains(words, r.word)
		case program:
			wrong = !test && slices.Contains(words, r.word)
		case helperName:
			wrong = !test && n.kind == topLevelFunction && n.text == r.word
		case typeName:
			wrong = n.kind == typeDeclaration && n.text == r.word
		}
		if wrong {
			return r, true
		}
	}
	return retired{}, false
}

func exceptionFor(list []wordException, n name, word string) (wordException, bool) {
	text := " " + strings.Join(wordsOf(n.text), " ") + " "
	for _, e := range list {
		if e.folder != "" && !within(n.file, e.folder) {
			continue
		}
		if e.name == n.text || e.name == "" && strings.HasSuffix(e.word, word) && strings.Contains(text, " "+e.word+" ") {
			return e, true
		}
	}
	return wordException{}, false
}

// wordsOf splits a name in camel case or with underscores into its words, in
// lower case: "parseHTTPLine_test" has parse, http, line and test.
func wordsOf(text string) []string {
	var words []string
	runes := []rune(text)
	start := 0
	for i, r := range runes {
		switch {
		case r == '_':
		case i == 0 || runes[i-1] == '_':
			start = i
			continue
		case unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
		default:
			continue
		}
		words = append(words, strings.ToLower(string(runes[start:i])))
		start = i
	}
	words = append(words, strings.ToLower(string(runes[start:])))
	return slices.DeleteFunc(words, func(w string) bool { return strings.Trim(w, "_") == "" })
}

// declaredNames lists the identifiers that the module declares, and its files'
// names.
func declaredNames(t *testing.T, root string) []name {
	t.Helper()
	var list []name
	for _, f := range goFiles(t, root) {
		found, err := namesOf(root, f.path)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	return list
}

func namesOf(root, file string) ([]name, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, filepath.Join(root, filepath.FromSlash(file)), nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(filepath.Base(file), ".go")
	list := []name{{text: base, file: file, position: file}}
	add := func(kind nameKind, ids ...*ast.Ident) {
		for _, id := range ids {
			if id != nil && id.Name != "_" {
				list = append(list, name{id.Name, file, fmt.Sprintf("%s:%d", file, set.Position(id.Pos()).Line), kind})
			}
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil {
				add(topLevelFunction, n.Name)
			} else {
				add(otherName, n.Name)
			}
		case *ast.TypeSpec:
			add(typeDeclaration, n.Name)
		case *ast.ValueSpec:
			add(otherName, n.Names...)
		case *ast.Field:
			add(otherName, n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				add(otherName, identifiers(n.Lhs)...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(otherName, identifiers([]ast.Expr{n.Key, n.Value})...)
			}
		}
		return true
	})
	return list, nil
}

func identifiers(list []ast.Expr) []*ast.Ident {
	var out []*ast.Ident
	for _, e := range list {
		if id, ok := e.(*ast.Ident); ok {
			out = append(out, id)
		}
	}
	return out
}

func TestNamesAreSplitIntoWords(t *testing.T) {
	for text, want := range map[string]string{
		"lane": "lane", "newLane": "new lane", "LaneID": "lane id", "HTTPLane": "http lane", "in_flight": "in flight",
		"held_test": "held test", "planes": "planes", "x": "x", "_x": "x", "IDs": "i ds",
	} {
		t.Run(text, func(t *testing.T) {
			if got := strings.Join(wordsOf(text), " "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestRetiredWordsAreFound(t *testing.T) {
	for about, tc := range map[string]struct {
		name  name
		found bool
	}{
		"a word of an identifier":             {name{text: "newLane", file: "relay/a.go"}, true},
		"a part of a word":                    {name{text: "planes", file: "relay/a.go"}, false},
		"a file's name":                       {name{text: "lane_test", file: "delivery/queue/lane_test.go"}, true},
		"a word of another folder":            {name{text: "alarm", file: "relay/ledger/a.go"}, false},
		"that word where it is refused":       {name{text: "alarm", file: "delivery/queue/a.go"}, true},
		"a word that tests may use":           {name{text: "nobody", file: "ingest/a_test.go"}, false},
		"that word in the program":            {name{text: "nobody", file: "ingest/a.go"}, true},
		"a helper of one word":                {name{text: "stamp", file: "ingest/a.go", kind: topLevelFunction}, true},
		"a helper that says of what":          {name{text: "clipReason", file: "ingest/a.go", kind: topLevelFunction}, false},
		"a variable with that word":           {name{text: "stamp", file: "ingest/a.go"}, false},
		"a type with a retired name":          {name{text: "Kept", file: "relay/a.go", kind: typeDeclaration}, true},
		"a field with the name of that type":  {name{text: "Kept", file: "relay/a.go"}, false},
		"a longer name that ends like a type": {name{text: "TimeKept", file: "relay/a.go", kind: typeDeclaration}, false},
	} {
		t.Run(about, func(t *testing.T) {
			if r, found := retiredWordIn(retiredWords(), tc.name); found != tc.found {
				t.Errorf("found %v %q", found, r.word)
			}
		})
	}
}
