package main

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"

	"github.com/penstock/penstock/deploy/servers"
)

// manner is the way in which the sink answers requests.
type manner int

const (
	accepting manner = iota
	failing          // 500
	hanging          // no answer
	resetting        // the connection is reset
)

// sink is the endpoint of the account's relays, reports and callbacks. It stores the requests that
// it answers with 200.
type sink struct {
	addr   string
	server *http.Server
	phase[manner]

	arrivedMu sync.Mutex
	arrived   map[string]*arrivals // by label, see store
}

// arrivals contains the number of requests with a label and their ids.
type arrivals struct {
	times int
	ids   map[string]bool
}

func newSink() (*sink, error) {
	s := &sink{addr: servers.FreeAddr(), arrived: map[string]*arrivals{}}
	return s, s.start()
}

func (s *sink) start() (err error) {
	s.server, _, err = servers.Serve(s.addr, s)
	return err
}

// kill closes the listener and all connections.
func (s *sink) kill() { _ = s.server.Close() }

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	manner, ended := s.now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch manner {
	case failing:
		http.Error(w, "not now", http.StatusInternalServerError)
	case hanging:
		select {
		case <-ended:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case resetting:
		panic(http.ErrAbortHandler)
	case accepting:
		s.store(r, body)
		_, _ = io.WriteString(w, "ok")
	}
}

// store stores a request under the label "message <text>", "report <id> <code>" or "<type> <job>".
func (s *sink) store(r *http.Request, body []byte) {
	q := r.URL.Query()
	label, id := "", ""
	switch r.URL.Path {
	case "/sms":
		label, id = "message "+q.Get("m"), q.Get("i")
	case "/dlr":
		label = "report " + q.Get("id") + " " + q.Get("code")
	default:
		var event struct {
			ID, Type string
			Data     struct {
				ID    string
				JobID string `json:"job_id"`
			}
		}
		_ = json.Unmarshal(body, &event)
		label, id = event.Type+" "+event.Data.ID+event.Data.JobID, event.ID
	}
	s.arrivedMu.Lock()
	defer s.arrivedMu.Unlock()
	if s.arrived[label] == nil {
		s.arrived[label] = &arrivals{ids: map[string]bool{}}
	}
	s.arrived[label].times++
	s.arrived[label].ids[id+" "+r.Header.Get("Webhook-Id")] = true
}

// times returns the number of requests with a label.
func (s *sink) times(label string) int {
	s.arrivedMu.Lock()
	defer s.arrivedMu.Unlock()
	if a := s.arrived[label]; a != nil {
		return a.times
	}
	return 0
}
