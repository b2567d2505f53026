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

// segmentation is the result of a calculator for one text.
type segmentation struct {
	Coding int `json:"coding"`
	Parts  int `json:"parts"`
}

// TestCalculatorsAgree checks that two independent calculators return the same coding and
// number of parts as the segmenter. It omits texts of 255 parts because one of the calculators
// needs ten seconds for such a text.
func TestCalculatorsAgree(t *testing.T) {
	table := slices.DeleteFunc(smstest.Texts(), func(tc smstest.Text) bool { return utf8.RuneCountInString(tc.Text) > 10_000 })
	if len(table) < 60 {
		t.Fatalf("the table has %d texts, want at least 60", len(table))
	}
	texts := make([]string, len(table))
	for i, tc := range table {
		texts[i] = tc.Text
	}
	for calculator, results := range runCalculators(t, texts) {
		for i, tc := range table {
			relaytest.Equal(t, tc.Name+": the segmentation by "+calculator, results[i], segment(t, tc.Text))
		}
	}
}

// The table has no text with a combining character at a boundary, because
// sms-segments-calculator does not split grapheme clusters. TS 23.040 allows splitting a
// cluster: the phone joins the parts before it displays the text.
func TestOneCalculatorKeepsClustersWhole(t *testing.T) {
	text := strings.Repeat("你", 66) + "e\u0301" + strings.Repeat("你", 66)
	results := runCalculators(t, []string{text})
	relaytest.Equal(t, "the segmentation", segment(t, text), segmentation{16, 2})
	relaytest.Equal(t, "the segmentation by split-sms", results["split-sms"][0], segmentation{16, 2})
	// If this fails after an update, such texts can be added to the table.
	relaytest.Equal(t, "the segmentation by sms-segments-calculator", results["sms-segments-calculator"][0], segmentation{16, 3})
}

func segment(t *testing.T, text string) segmentation {
	t.Helper()
	m, err := sms.New().Text(text, sms.Options{})
	relaytest.NoError(t, err)
	return segmentation{int(m.Coding), len(m.Parts)}
}

// runCalculators runs the calculators on texts. The keys of results are their names.
func runCalculators(t *testing.T, texts []string) (results map[string][]segmentation) {
	t.Helper()
	input, err := json.Marshal(texts)
	relaytest.NoError(t, err)
	cmd := exec.Command("node", "-e", calculators)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules(t))
	cmd.Stdin = bytes.NewReader(input)
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v: %s", err, output)
	}
	if err := json.Unmarshal(output, &results); err != nil || len(results) != 2 {
		t.Fatalf("node: %v in %s", err, output)
	}
	for calculator, list := range results {
		if len(list) != len(texts) {
			t.Fatalf("%s returned %d results, want %d", calculator, len(list), len(texts))
		}
	}
	return results
}

// modules returns the folder in which deploy/test-deps.sh installs npm packages.
func modules(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", ".tools", "node", "node_modules"))
	relaytest.NoError(t, err)
	_, calculatorErr := os.Stat(filepath.Join(dir, "sms-segments-calculator"))
	_, splitErr := os.Stat(filepath.Join(dir, "split-sms"))
	_, nodeErr := exec.LookPath("node")
	if calculatorErr == nil && splitErr == nil && nodeErr == nil {
		return dir
	}
	smstest.Missing(t, "node and the npm packages sms-segments-calculator and split-sms")
	return ""
}
