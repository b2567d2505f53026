package db

import "fmt"

// Server identifies the PostgreSQL server that gateways use. A standby that is promoted
// begins a new timeline, so a server with a lower timeline is an old primary.
type Server struct {
	Host     string `json:"host"` // and port
	System   string `json:"system"`
	Timeline uint32 `json:"timeline"`
	// Accepted counts the servers that an operator accepted although they are not newer
	// than their predecessors.
	Accepted int `json:"accepted"`
}

// Newer returns the newer of s and found. It returns s if neither is newer.
func (s Server) Newer(found Server) Server {
	switch {
	case s.Accepted != found.Accepted:
		if found.Accepted > s.Accepted {
			return found
		}
	case s.System == "", s.System == found.System && s.Timeline < found.Timeline:
		return found
	}
	return s
}

// Refuse returns a ServerRefused if found must not be used after s.
func (s Server) Refuse(found Server) error {
	if s.System == "" || s.System == found.System && s.Timeline <= found.Timeline {
		return nil
	}
	return &ServerRefused{Found: found, Known: s}
}

// ServerRefused is the error of a connection to a server that is neither the one that the
// gateways used last nor its successor.
type ServerRefused struct{ Found, Known Server }

// Error names both servers and advises the operator.
func (e *ServerRefused) Error() string {
	if e.Found.System != e.Known.System {
		return fmt.Sprintf("%s is refused: it is another PostgreSQL (system identifier %s) than %s (%s), which was used last; "+
			"if it replaces that server, run `penstock recover --accept-server`", e.Found.Host, e.Found.System, e.Known.Host, e.Known.System)
	}
	return fmt.Sprintf("%s is refused: it is an old primary (timeline %d), since %s was promoted (timeline %d); "+
		"make it a standby of that server, or, if it was restored from a backup to replace that server, run `penstock recover --accept-server`",
		e.Found.Host, e.Found.Timeline, e.Known.Host, e.Known.Timeline)
}
