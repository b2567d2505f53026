package sms_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/decoders/sms/smstest"
	"github.com/penstock/penstock/relay/relaytest"
)

//go:embed testdata/calculators.cjs
var calculators string

type answer struct {
	Coding int `json:"coding"`
	Parts  int `json:"parts"`
}

// Two independent calculators return the same coding and number of parts as the segmenter.
// Texts of 255 parts are left out because one of the calculators needs ten seconds for them.
func TestCalculatorsAgree(t *testing.T) {
	table := slices.DeleteFunc(smstest.Texts(), func(tc smstest.Text) bool { return utf8.RuneCountInString(tc.Text) > 10_000 })
	if len(table) < 60 {
		t.Fatalf("the table has %d texts only", len(table))
	}
	texts := make([]string, len(table))
	for i, tc := range table {
		texts[i] = tc.Text
	}
	for calculator, answers := range ask(t, texts) {
		for i, tc := range table {
			relaytest.Equal(t, tc.Name+": our count, beside "+calculator+"'s,", count(t, tc.Text), answers[i])
		}
	}
}

// The table has no text with combining characters at a boundary, because
// sms-segments-calculator does not split Unicode grapheme clusters. TS 23.040 allows to split
// them: the phone joins the parts before it shows the text.
func TestOneCalculatorKeepsClustersWhole(t *testing.T) {
	text := strings.Repeat("你", 66) + "e\u0301" + strings.Repeat("你", 66)
	answers := ask(t, []string{text})
	relaytest.Equal(t, "our count", count(t, text), answer{16, 2})
	relaytest.Equal(t, "the count of split-sms", answers["split-sms"][0], answer{16, 2})
	// If this fails after an update, such texts can be added to the table.
	relaytest.Equal(t, "the count of sms-segments-calculator", answers["sms-segments-calculator"][0], answer{16, 3})
}

func count(t *testing.T, text string) answer {
	t.Helper()
	m, err := sms.New().Text(text, sms.Options{})
	relaytest.NoError(t, err)
	return answer{int(m.Coding), len(m.Parts)}
}

// ask runs the calculators on texts.
func ask(t *testing.T, texts []string) (answers map[string][]answer) {
	t.Helper()
	input, err := json.Marshal(texts)
	relaytest.NoError(t, err)
	cmd := exec.Command("node", "-e", calculators)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules(t))
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v: %s", err, out)
	}
	if err := json.Unmarshal(out, &answers); err != nil || len(answers) != 2 {
		t.Fatalf("node: %v in %s", err, out)
	}
	for calculator, list := range answers {
		if len(list) != len(texts) {
			t.Fatalf("%s answered %d times", calculator, len(list))
		}
	}
	return answers
}

// modules returns the folder in which deploy/test-deps.sh installs npm packages.
func modules(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", ".tools", "node", "node_modules"))
	relaytest.NoError(t, err)
	_, missing := os.Stat(filepath.Join(dir, "sms-segments-calculator"))
	_, missing2 := os.Stat(filepath.Join(dir, "split-sms"))
	_, noNode := exec.LookPath("node")
	if missing == nil && missing2 == nil && noNode == nil {
		return dir
	}
	smstest.Missing(t, "node and the npm packages sms-segments-calculator and split-sms")
	return ""
}
