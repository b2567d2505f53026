package redisstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sim"
)

// simFields are the fields of a SIM's hash, without those that are empty: short
// texts keep the hash in the compact form that Redis has for small ones.
func simFields(s sim.SIM) map[string]string {
	f := map[string]string{
		"imsi": s.IMSI, "msisdn": s.MSISDN, "4g": mark(s.Service4G), "5g": mark(s.Service5G),
		"pin": s.Codes.PIN, "pin2": s.Codes.PIN2, "puk": s.Codes.PUK, "puk2": s.Codes.PUK2,
		"state": string(s.State), "asked": string(s.Requested), "job": s.Job, "sub": s.Subscriber, "pool": s.Pool,
		"limit": count(s.Limit.Monthly), "warn": count(s.Limit.Warning), "cap": string(s.Limit.Cap),
	}
	if s.Requested == s.State {
		f["asked"] = ""
	}
	if s.Limit.Cap == sim.NoCap {
		f["cap"] = ""
	}
	if len(s.Recipients) > 0 {
		f["recipients"] = encode(s.Recipients)
	}
	maps.DeleteFunc(f, func(_, v string) bool { return v == "" })
	return f
}

// readSIM reads what simFields wrote, as HGETALL answers: a name, its value, and
// so on. Pages hold many, so that no map is made of each.
func readSIM(s *sim.SIM, iccid sim.ICCID, pairs []string) error {
	s.ICCID = iccid
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == "recipients" {
			if err := json.Unmarshal([]byte(pairs[i+1]), &s.Recipients); err != nil {
				return fmt.Errorf("SIM %s: recipients: %w", iccid, err)
			}
			continue
		}
		setSIMField(s, pairs[i], pairs[i+1])
	}
	if s.Requested == "" {
		s.Requested = s.State
	}
	if s.Limit.Cap == "" {
		s.Limit.Cap = sim.NoCap
	}
	return nil
}

// setSIMField reads one field; those of others are passed over.
func setSIMField(s *sim.SIM, name, value string) {
	switch name {
	case "imsi":
		s.IMSI = value
	case "msisdn":
		s.MSISDN = value
	case "4g":
		s.Service4G = true
	case "5g":
		s.Service5G = true
	case "pin":
		s.Codes.PIN = value
	case "pin2":
		s.Codes.PIN2 = value
	case "puk":
		s.Codes.PUK = value
	case "puk2":
		s.Codes.PUK2 = value
	case "state":
		s.State = sim.State(value)
	case "asked":
		s.Requested = sim.State(value)
	case "job":
		s.Job = value
	case "sub":
		s.Subscriber = value
	case "pool":
		s.Pool = value
	case "limit":
		s.Limit.Monthly = number(value)
	case "warn":
		s.Limit.Warning = number(value)
	case "cap":
		s.Limit.Cap = sim.Cap(value)
	}
}

func mark(b bool) string {
	if b {
		return "1"
	}
	return ""
}

func count(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // written by count
	return n
}

// simRow is a SIM's values of sim.Columns.
func simRow(s sim.SIM) []string { return []string{string(s.ICCID), s.IMSI, s.MSISDN} }

// simMembers are the members that a SIM has, by the keys of the sets.
func simMembers(acct account.ID, s sim.SIM) map[string]string {
	scopes := []sim.Scope{{}}
	if s.Pool != "" {
		scopes = append(scopes, sim.Scope{Pool: s.Pool})
	}
	if s.Subscriber != "" {
		scopes = append(scopes, sim.Scope{Subscriber: s.Subscriber})
	}
	out := make(map[string]string, len(scopes)*len(sim.Columns()))
	for _, in := range scopes {
		for i, column := range sim.Columns() {
			out[keySIMs(acct, in, column)] = member(i, simRow(s))
		}
	}
	return out
}

// saveSIM saves what changed of a SIM and of its indexes, unless somebody else
// changed it meanwhile. Removing every field removes it.
//
//	KEYS  1 SIM  2… sorted sets
//	ARGV  1 version as it was, "" for none  2 fields to set  3 fields to remove
//	      then name and value of those, names of these, and for each set the
//	      member to remove and the one to add, "" for none
//	result 1 saved, 0 changed meanwhile
const saveSIM = `
if (redis.call('HGET', KEYS[1], 'v') or '') ~= ARGV[1] then return 0 end
local sets, gone, at = tonumber(ARGV[2]), tonumber(ARGV[3]), 4
if sets > 0 then redis.call('HSET', KEYS[1], unpack(ARGV, at, at + 2 * sets - 1)) end
at = at + 2 * sets
if gone > 0 then redis.call('HDEL', KEYS[1], unpack(ARGV, at, at + gone - 1)) end
at = at + gone
for i = 2, #KEYS do
  if ARGV[at] ~= '' then redis.call('ZREM', KEYS[i], ARGV[at]) end
  if ARGV[at + 1] ~= '' then redis.call('ZADD', KEYS[i], 0, ARGV[at + 1]) end
  at = at + 2
end
return 1`

// kept is a SIM as it was read.
type kept struct {
	sim.SIM
	there bool
	pairs []string // names and values as stored, the version among them
}

// fields are the pairs as a map.
func (k kept) fields() map[string]string {
	out := make(map[string]string, len(k.pairs)/2)
	for pair := range slices.Chunk(k.pairs, 2) {
		out[pair[0]] = pair[1]
	}
	return out
}

// saving is the call that makes a kept SIM what it shall be, nil for gone; false
// if it is that already.
func (k kept) saving(acct account.ID, shall *sim.SIM) (call, bool) {
	have, fields := k.fields(), map[string]string{}
	before, after := map[string]string{}, map[string]string{}
	if k.there {
		before = simMembers(acct, k.SIM)
	}
	if shall != nil {
		fields, after = simFields(*shall), simMembers(acct, *shall)
		fields["v"] = have["v"]
		if maps.Equal(have, fields) && maps.Equal(before, after) {
			return call{}, false
		}
		fields["v"] = strconv.FormatInt(number(have["v"])+1, 10)
	}
	var sets, gone []any
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if have[name] != fields[name] {
			sets = append(sets, name, fields[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if _, stays := fields[name]; !stays {
			gone = append(gone, name)
		}
	}
	out := call{keys: []string{keySIM(acct, k.ICCID)}, args: []any{have["v"], len(sets) / 2, len(gone)}}
	out.args = append(append(out.args, sets...), gone...)
	out.move(before, after)
	return out, true
}

// move adds the sets whose members change.
func (c *call) move(before, after map[string]string) {
	keys := make(map[string]bool, len(before)+len(after))
	for _, members := range []map[string]string{before, after} {
		for key := range members {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if before[key] != after[key] {
			c.keys = append(c.keys, key)
			c.args = append(c.args, before[key], after[key])
		}
	}
}
