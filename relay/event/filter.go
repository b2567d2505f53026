package event

import (
	"time"

	"github.com/penstock/penstock/relay/account"
)

// Filter selects events; zero fields select all.
type Filter struct {
	IDs     []string
	State   State
	Account account.ID
	Source  string
	Device  string // a part of the body, the path or the query, any case
	Query   string // likewise; also a part of the id, the reason or the outcome
	From    time.Time
	To      time.Time
}
