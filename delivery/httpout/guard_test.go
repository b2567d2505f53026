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
	"github.com/penstock/penstock/relay/relaytest"
)

// No request is made, whatever the notation of the address. A literal address is dead
// at once; a name may also fail to resolve.
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
				response, err := c.Do(t.Context(), get(url))
				if err == nil {
					t.Fatalf("%s answered with status %d", url, response.Status)
				}
				if literal {
					relaytest.Equal(t, "the class of "+url, delivery.Classify(0, nil, err, time.Now()).Class, delivery.Dead)
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

// A public endpoint cannot redirect to a private address.
func TestARedirectToAPrivateAddressIsNotFollowed(t *testing.T) {
	port, hits := guardtest.Listen(t)
	var requests atomic.Int64
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, "http://"+r.URL.Query().Get("to")+":"+port+"/", http.StatusTemporaryRedirect)
	})
	c := client(t, Options{})
	for _, to := range []string{"127.0.0.1", "localhost", "169.254.169.254", "2130706433"} {
		response, err := c.Do(t.Context(), get(url+"/?to="+to))
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the class of a redirect to "+to, delivery.Classify(response.Status, response.Header, nil, time.Now()).Class, delivery.Dead)
	}
	relaytest.Equal(t, "the number of redirected connections", hits.Load(), 0)
	relaytest.Equal(t, "the number of requests", requests.Load(), 4)
}
