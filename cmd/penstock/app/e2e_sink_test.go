package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/delivery/email/smtptest"
)

// hit is a request that a customer's endpoint received.
type hit struct {
	method, path string
	query, form  url.Values
	header       http.Header
	body         string
}

// sink is a customer's endpoint. It answers 200 unless told otherwise.
type sink struct {
	url    string
	mu     sync.Mutex
	hits   []hit
	answer func(w http.ResponseWriter, h hit, before int)
}

// newSink starts one; answer may be nil, and is told how many hits the same
// path had before.
func newSink(t *testing.T, answer func(w http.ResponseWriter, h hit, before int)) *sink {
	t.Helper()
	k := &sink{answer: answer}
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	k.url = server.URL
	return k
}

func (k *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h := hit{method: r.Method, path: r.URL.EscapedPath(), query: r.URL.Query(), header: r.Header, body: string(body)}
	h.form, _ = url.ParseQuery(h.body)
	k.mu.Lock()
	before := 0
	for _, old := range k.hits {
		if old.path == h.path {
			before++
		}
	}
	k.hits = append(k.hits, h)
	k.mu.Unlock()
	if k.answer != nil {
		k.answer(w, h, before)
	}
}

// at returns the hits of a path so far.
func (k *sink) at(path string) []hit {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(k.hits), func(h hit) bool { return h.path != path })
}

// await waits for the n-th hit of a path and returns it.
func (k *sink) await(t *testing.T, path string, n int) hit {
	t.Helper()
	var got []hit
	eventually(t, fmt.Sprintf("hit %d at %s", n, path), func() (any, bool) {
		got = k.at(path)
		return got, len(got) >= n
	})
	return got[n-1]
}

// mailbox is an address that no other gateway of the site writes to.
func (s *site) mailbox() string {
	return fmt.Sprintf("box%d@%s", s.stores.Add(1), smtptest.Domain)
}

// mails are those to an address, as the sink or the SMTP server has them.
func (g *gateway) mails(to string) []string {
	g.t.Helper()
	all := []string{}
	if g.site.smtp != nil {
		all = g.site.smtp.Mails(g.t)
	} else {
		files, err := filepath.Glob(filepath.Join(g.data(), "mail", "*.eml"))
		if err != nil {
			g.t.Fatal(err)
		}
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				g.t.Fatal(err)
			}
			all = append(all, string(raw))
		}
	}
	var found []string
	for _, m := range all {
		m = strings.ReplaceAll(m, "\r\n", "\n")
		if strings.Contains(m, "\nTo: <"+to+">\n") {
			found = append(found, m)
		}
	}
	return found
}

// awaitMail waits for a mail that holds a word in its text or header.
func (g *gateway) awaitMail(to, word string) string {
	g.t.Helper()
	found := ""
	eventually(g.t, "a mail with "+word, func() (any, bool) {
		all := g.mails(to)
		for _, m := range all {
			if strings.Contains(m, word) {
				found = m
			}
		}
		return all, found != ""
	})
	return found
}
