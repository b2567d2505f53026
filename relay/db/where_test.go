package db_test

import (
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestWhereNumbersItsParameters(t *testing.T) {
	var w db.Where
	relaytest.Equal(t, "the clause without conditions", w.String(), "")
	w.AndSet("account = ?", 0)
	w.And("(a, b) > (?, ?)", 1, "x")
	w.AndSet("state = ?", "new")
	w.And("(c LIKE ? OR d LIKE ?)", "%y%")
	w.And("e <> ''")
	limit := w.Arg(9)
	relaytest.Equal(t, "the clause", w.String(), " WHERE (a, b) > ($1, $2) AND state = $3 AND (c LIKE $4 OR d LIKE $4) AND e <> ''")
	relaytest.Equal(t, "the last parameter", limit, "$5")
	relaytest.Equal(t, "the parameters", w.Args(), []any{1, "x", "new", "%y%", 9})
}
