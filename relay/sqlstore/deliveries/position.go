package deliveries

import (
	"cmp"
	"database/sql"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
)

// position is a place in the order of lists: newest first, then by id and
// account, downwards.
type position struct {
	ms      int64
	id      string
	account account.ID
}

func positionOf(d *outbox.Delivery) position {
	return position{d.CreatedAt.UnixMilli(), d.ID, d.Account}
}

// compare orders positions as lists do.
func compare(a, b position) int {
	return cmp.Or(cmp.Compare(b.ms, a.ms), cmp.Compare(b.id, a.id), cmp.Compare(b.account, a.account))
}

// String returns the position as a cursor.
func (p position) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %s", p.ms, p.account, p.id))
}

// parseCursor reads a cursor; the empty one is nil.
func parseCursor(s string) (*position, error) {
	if s == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	parts := strings.SplitN(string(b), " ", 3)
	if err != nil || len(parts) != 3 {
		return nil, relay.Invalid("cursor", "This is not a cursor of this list.")
	}
	ms, err1 := strconv.ParseInt(parts[0], 10, 64)
	acct, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err1 != nil || err2 != nil {
		return nil, relay.Invalid("cursor", "This is not a cursor of this list.")
	}
	return &position{ms: ms, id: parts[2], account: account.ID(acct)}, nil
}

// scanPosition reads a row of created, id and account.
func scanPosition(row *sql.Rows, p *position) error {
	var acct int64
	err := row.Scan(&p.ms, &p.id, &acct)
	p.account = account.ID(acct)
	return err
}
