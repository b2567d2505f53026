package message

import (
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay/account"
)

// String names the part for carriers: the account, the message and the part,
// with dashes between.
func (p PartRef) String() string {
	return p.Account.String() + "-" + p.ID.String() + "-" + strconv.Itoa(p.Part)
}

// ParsePartRef parses the format of String; false for anything else.
func ParsePartRef(s string) (PartRef, bool) {
	fields := strings.Split(s, "-")
	if len(fields) != 3 {
		return PartRef{}, false
	}
	acct, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return PartRef{}, false
	}
	id, known := ParseID(fields[1])
	part, err := strconv.Atoi(fields[2])
	p := PartRef{Ref: Ref{Account: account.ID(acct), ID: id}, Part: part}
	return p, known && err == nil && part >= 0 && part < 255 && p.String() == s
}
