package httpout

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/guard/guardtest"
)

// No request is made, in whichever form the URL hides the address. A literal address
// is dead at once; a name may also fail to resolve.
func TestNoRequestReachesAnAddressThatIsNotPublic(t *testing.T) {
	if n := len(guardtest.Addresses()) + len(guardtest.Names()); n < 60 {
		t.Fatalf("%d vectors, want at least 60", n)
	}
	port, hits := guardtest.Listen(t)
	c := client(t, Options{Allow: []netip.Prefix{}, Timeout: 2 * time.Second})
	try := func(name, host string, literal bool) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := strings.ReplaceAll(net.JoinHostPort(host, port), "%", "%25")
			for _, url := range []string{"http://" + host + "/", "https://" + host + "/in", "http://example.test:80@" + host + "/"} {
				answer, err := c.Do(t.Context(), get(url))
				if err == nil {
					t.Fatalf("%s answered %d", url, answer.Status)
				}
				if v := delivery.Classify(0, nil, err, time.Now()); literal && v.Class != delivery.Dead {
					t.Errorf("%s: %+v", url, v)
				}
			}
		})
	}
	t.Run("vectors", func(t *testing.T) {
		for name, addr := range guardtest.Addresses() {
			try(name, addr, true)
		}
		for name, host := range guardtest.Names() {
			try("name: "+name, host, false)
		}
	})
	if n := hits.Load(); n != 0 {
		t.Errorf("%d connections arrived", n)
	}
}

// A public endpoint cannot send us inside.
func TestARedirectInsideIsNotFollowed(t *testing.T) {
	port, hits := guardtest.Listen(t)
	var asked atomic.Int64
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, "http://"+r.URL.Query().Get("to")+":"+port+"/", http.StatusTemporaryRedirect)
	})
	c := client(t, Options{})
	for _, to := range []string{"127.0.0.1", "localhost", "169.254.169.254", "2130706433"} {
		answer, err := c.Do(t.Context(), get(url+"/?to="+to))
		if err != nil || delivery.Classify(answer.Status, answer.Header, nil, time.Now()).Class != delivery.Dead {
			t.Errorf("%s: %+v, error %v", to, answer, err)
		}
	}
	if hits.Load() != 0 || asked.Load() != 4 {
		t.Errorf("%d connections arrived after %d requests", hits.Load(), asked.Load())
	}
}
