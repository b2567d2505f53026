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

// simOf reads what simFields wrote.
func simOf(iccid sim.ICCID, f map[string]string) (sim.SIM, error) {
	s := sim.SIM{
		ICCID: iccid, IMSI: f["imsi"], MSISDN: f["msisdn"], Service4G: f["4g"] != "", Service5G: f["5g"] != "",
		Codes: sim.Codes{PIN: f["pin"], PIN2: f["pin2"], PUK: f["puk"], PUK2: f["puk2"]},
		State: sim.State(f["state"]), Requested: sim.State(f["asked"]), Job: f["job"], Subscriber: f["sub"], Pool: f["pool"],
		Limit: sim.Limit{Monthly: number(f["limit"]), Warning: number(f["warn"]), Cap: sim.Cap(f["cap"])},
	}
	if s.Requested == "" {
		s.Requested = s.State
	}
	if s.Limit.Cap == "" {
		s.Limit.Cap = sim.NoCap
	}
	if list := f["recipients"]; list != "" {
		if err := json.Unmarshal([]byte(list), &s.Recipients); err != nil {
			return s, fmt.Errorf("SIM %s: recipients: %w", iccid, err)
		}
	}
	return s, nil
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
	there  bool
	fields map[string]string // as stored, the version among them
}

// saving is the call that makes a kept SIM what it shall be; nil: it is gone.
func (k kept) saving(acct account.ID, shall *sim.SIM) call {
	fields, before, after := map[string]string{}, map[string]string{}, map[string]string{}
	if k.there {
		before = simMembers(acct, k.SIM)
	}
	if shall != nil {
		fields, after = simFields(*shall), simMembers(acct, *shall)
		fields["v"] = strconv.FormatInt(number(k.fields["v"])+1, 10)
	}
	var sets, gone []any
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if k.fields[name] != fields[name] {
			sets = append(sets, name, fields[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.fields)) {
		if _, stays := fields[name]; !stays {
			gone = append(gone, name)
		}
	}
	out := call{keys: []string{keySIM(acct, k.ICCID)}, args: []any{k.fields["v"], len(sets) / 2, len(gone)}}
	out.args = append(append(out.args, sets...), gone...)
	out.move(before, after)
	return out
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
