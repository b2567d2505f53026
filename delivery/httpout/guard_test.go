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

// A delivery to a literal address is dead at once, whatever the notation of the address.
func TestNoRequestReachesAnAddressThatIsNotPublic(t *testing.T) {
	c := newClient(t, Options{Allow: []netip.Prefix{}, Timeout: 2 * time.Second})
	guardtest.Refuse(t, func(t *testing.T, host, port string, literal bool) {
		host = strings.ReplaceAll(net.JoinHostPort(host, port), "%", "%25")
		for _, url := range []string{"http://" + host + "/", "https://" + host + "/in", "http://example.test:80@" + host + "/"} {
			response, err := c.Do(t.Context(), get(url))
			if err == nil {
				t.Fatalf("%s responded with status %d, want no connection", url, response.Status)
			}
			if literal {
				relaytest.Equal(t, "the class of "+url, delivery.Classify(0, nil, err, time.Now()).Class, delivery.Dead)
			}
		}
	})
}

// A public endpoint cannot redirect to a private address.
func TestARedirectToAPrivateAddressIsNotFollowed(t *testing.T) {
	port, hits := guardtest.Listen(t)
	var requests atomic.Int64
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, "http://"+r.URL.Query().Get("host")+":"+port+"/", http.StatusTemporaryRedirect)
	})
	c := newClient(t, Options{})
	for _, host := range []string{"127.0.0.1", "localhost", "169.254.169.254", "2130706433"} {
		response, err := c.Do(t.Context(), get(url+"/?host="+host))
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the class of a redirect to "+host, delivery.Classify(response.Status, response.Header, nil, time.Now()).Class, delivery.Dead)
	}
	relaytest.Equal(t, "the number of connections to private addresses", hits.Load(), 0)
	relaytest.Equal(t, "the number of requests", requests.Load(), 4)
}
