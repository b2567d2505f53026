package redisstore

import (
	"fmt"
	"strings"

	"github.com/penstock/penstock/relay/message"
)

// recordsSource reads what is needed to work with messages. read returns for each
// id {id, parts, ms when it was to be sent, whether it wants reports, place before
// its first record}, or false; and the names and the records of all parts. split
// returns what a record is made of, see keyMessageParts. whole is a message as
// decodeReplies takes it.
const recordsSource = manySource + `
local function read(parts, ids)
  local list, names, wanted = {}, {}, {}
  for i, id in ipairs(ids) do
    wanted[2 * i - 1] = id
    wanted[2 * i] = id .. '/0'
  end
  local records, had, further = {}, get(parts, wanted), {}
  for i, id in ipairs(ids) do
    local head = had[2 * i - 1]
    list[i] = false
    if head then
      local n, at, report = string.match(head, '^(%d+)|(%d+)|(%d)')
      local m = {id = id, n = tonumber(n), at = tonumber(at), report = report == '1', before = #names}
      list[i] = m
      names[m.before + 1] = wanted[2 * i]
      records[m.before + 1] = had[2 * i]
      for k = 1, m.n - 1 do
        names[m.before + 1 + k] = id .. '/' .. k
        further[#further + 1] = m.before + 1 + k
      end
    end
  end
  if #further == 0 then return list, names, records end
  wanted = {}
  for i, at in ipairs(further) do wanted[i] = names[at] end
  for i, record in ipairs(get(parts, wanted)) do records[further[i]] = record end
  return list, names, records
end
local function split(record)
  if not record then return 'pending', '', '0', '', '', '', '' end
  return string.match(record, '^(%a+)|(%-?%d*)|(%d+)|([^|]*)|(%-?%d*)|([^|]*)|(.*)$')
end
local function whole(m, messages, names, records, notes)
  local out, wanted = {m.id, redis.call('HGET', messages, m.id)}, {}
  for k = 1, m.n do
    local name = names[m.before + k]
    out[#out + 1] = records[m.before + k] or ''
    wanted[#wanted + 1] = name .. '/why'
    wanted[#wanted + 1] = name .. '/line'
  end
  for _, note in ipairs(get(notes, wanted)) do out[#out + 1] = note or '' end
  return out
end
`

// saveMessagesSource charges for new messages, saves and queues them.
//
//	KEYS  1 credit  2 entries  3 due  4 pending  5 all  6 once  7 messages  8 parts
//	ARGV  1 credits  2 JSON of the entry  3 entries kept
//	      4 order, '' for one without a key  5 answer  6 ms to know the key
//	      7… five for each message: id, parts, ms when due or of the lease's end,
//	      head, JSON
//	result {1} saved, now or before; {0} not enough credit; {2} the key belongs
//	       to another order; {3, answer} the order was made before
const saveMessagesSource = creditSource + manySource + `
if redis.call('HEXISTS', KEYS[7], ARGV[7]) == 1 then return {1} end
if ARGV[4] ~= '' then
  local had = redis.call('GET', KEYS[6])
  if had then
    local cut = string.find(had, '|', 1, true)
    if string.sub(had, 1, cut - 1) ~= ARGV[4] then return {2} end
    return {3, string.sub(had, cut + 1)}
  end
end
if not credit(KEYS[1], KEYS[2], -tonumber(ARGV[1]), ARGV[2], ARGV[3]) then return {0} end
if ARGV[4] ~= '' then redis.call('SET', KEYS[6], ARGV[4] .. '|' .. ARGV[5], 'PX', ARGV[6]) end
local due, all, pending, texts, heads = {}, {}, {}, {}, {}
local i, k = 0, 0
for a = 7, #ARGV, 5 do
  local id = ARGV[a]
  due[i + 1], due[i + 2] = ARGV[a + 2], id
  all[i + 1], all[i + 2] = id, id
  heads[i + 1], heads[i + 2] = id, ARGV[a + 3]
  texts[i + 1], texts[i + 2] = id, ARGV[a + 4]
  i = i + 2
  for n = 0, ARGV[a + 1] - 1 do
    pending[k + 1], pending[k + 2] = n == 0 and id or string.format('%.0f', id + n), id .. '/' .. n
    k = k + 2
  end
end
each('HSET', KEYS[7], texts)
each('HSET', KEYS[8], heads)
each('ZADD', KEYS[3], due)
each('ZADD', KEYS[4], pending)
each('ZADD', KEYS[5], all)
return {1}`

// claimMessagesSource leases messages that are due.
//
//	KEYS  1 due  2 parts
//	ARGV  1 ms of now  2 ms of the lease's end  3 how many at most
//	result {{id, record, …}, …}
const claimMessagesSource = recordsSource + `
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
local list, _, records = read(KEYS[2], ids)
local out = {}
for i, m in ipairs(list) do
  mark(KEYS[1], ids[i], m and ARGV[2])
  if m then
    local reply = {m.id}
    for k = 1, m.n do reply[1 + k] = records[m.before + k] or '' end
    out[#out + 1] = reply
  end
end
flush()
return out`

// beginMessagesSource writes down that parts are about to be handed to a carrier.
// A call that comes again, because its answer was lost, is answered as before;
// one that comes too late takes no part that came back since.
//
//	KEYS  1 due  2 pending  3 parts
//	ARGV  1 carrier  2 ms of now  3 ms of the lease's end  4 name of the call
//	      5… for each message: id, 1 to take parts that are sending as well, how
//	      many parts, their names
//	result {{index, …}, …} which of the parts of each message may be handed over
const beginMessagesSource = recordsSource + `
local names, a = {}, 5
while a <= #ARGV do
  names[#names + 1] = ARGV[a]
  for i = a + 3, a + 2 + ARGV[a + 2] do names[#names + 1] = ARGV[i] end
  a = a + 3 + ARGV[a + 2]
end
local records = get(KEYS[3], names)
local tail = '|' .. ARGV[2] .. '|' .. ARGV[1] .. '|'
local fresh = 'sending||0|' .. ARGV[4] .. tail
local out, set, at = {}, {}, 0
a = 5
while a <= #ARGV do
  local begun, n = {}, tonumber(ARGV[a + 2])
  at = at + 1
  local head = records[at]
  for i = 1, n do
    at = at + 1
    local record, sending = records[at], fresh
    local state, due, count, name, _, _, ref = 'pending'
    if record then
      state, due, count, name, _, _, ref = split(record)
      sending = 'sending|' .. due .. '|' .. count .. '|' .. ARGV[4] .. tail .. ref
    end
    if not head then
      state = nil -- there is no such message
    elseif state == 'sending' and name == ARGV[4] then
      begun[#begun + 1] = i
    elseif (state == 'pending' and name ~= ARGV[4]) or (state == 'sending' and ARGV[a + 1] == '1') then
      set[#set + 1] = names[at]
      set[#set + 1] = sending
      mark(KEYS[2], names[at], false)
      begun[#begun + 1] = i
    end
  end
  if #begun > 0 then mark(KEYS[1], ARGV[a], ARGV[3]) end
  out[#out + 1] = begun
  a = a + 3 + n
end
each('HSET', KEYS[3], set)
flush()
return out`

// restSource says when a message is due next, or until when it is kept when
// nothing of it waits: a part that is due now, or in a carrier's hands, keeps the
// lease that somebody has on it.
const restSource = recordsSource + `
local function rest(m, records, due, ended, now, till)
  local leased, next = false, nil
  for k = 1, m.n do
    local state, at = 'pending', ''
    if records[m.before + k] then state, at = string.match(records[m.before + k], '^(%a+)|(%-?%d*)') end
    if state == 'sending' then
      leased = true
    elseif state == 'pending' then
      at = tonumber(at) or m.at
      if at <= tonumber(now) then leased = true end
      if not next or at < next then next = at end
    end
  end
  if leased and redis.call('ZSCORE', due, m.id) then return end
  mark(due, m.id, next and string.format('%.0f', next) or false)
  if not next then mark(ended, m.id, till) end
end
`

// messageStates tells the scripts what may follow on what, and what accounts are
// told about.
func messageStates() string {
	var b strings.Builder
	b.WriteString("local follows, reported = {}, {}\n")
	for _, s := range message.States() {
		for _, was := range s.Before() {
			fmt.Fprintf(&b, "follows['%s<%s'] = true\n", s, was)
		}
		if s.Code() != 0 {
			fmt.Fprintf(&b, "reported['%s'] = true\n", s)
		}
	}
	return b.String()
}

// settleMessagesSource records what became of parts.
//
//	KEYS  1 due  2 pending  3 ended  4 untold  5 credit  6 entries  7 messages
//	      8 parts  9 notes
//	ARGV  1 ms until when a message is kept that ends  2 entries kept
//	      3… for each message: id, how many parts, ms of now, and nine for each part:
//	      number, state, ms of the change, carrier, carrier's id, reason, delivery
//	      report, ms of the next attempt, JSON of the entry if the credit goes
//	      back else ''
//	result the messages whose accounts want a report
const settleMessagesSource = creditSource + restSource + `
local ids, a = {}, 3
while a <= #ARGV do
  ids[#ids + 1] = ARGV[a]
  a = a + 3 + 9 * ARGV[a + 1]
end
local list, names, records = read(KEYS[8], ids)
local set, notes, refunds, tell = {}, {}, {}, {}
a = 3
for i, m in ipairs(list) do
  local changed, n, now = false, tonumber(ARGV[a + 1]), ARGV[a + 2]
  for p = a + 3, m and a + 2 + 9 * n or 0, 9 do
    local part, state = tonumber(ARGV[p]), ARGV[p + 1]
    local at = m.before + 1 + part
    local was, due, count, name, since, carrier, ref = split(records[at])
    local moves = part < m.n and follows[state .. '<' .. was]
    if ARGV[p + 3] ~= '' then carrier = ARGV[p + 3] end
    if ARGV[p + 4] ~= '' then ref = ARGV[p + 4] end
    if moves then
      changed, since, count = true, ARGV[p + 2], string.format('%d', count + 1)
      if ARGV[p + 5] ~= '' then
        notes[#notes + 1] = names[at] .. '/why'
        notes[#notes + 1] = ARGV[p + 5]
      end
      if ARGV[p + 6] ~= '' then
        notes[#notes + 1] = names[at] .. '/line'
        notes[#notes + 1] = ARGV[p + 6]
      end
      if state == 'pending' then
        due = ARGV[p + 7]
        mark(KEYS[2], names[at], string.format('%.0f', m.id + part))
        mark(KEYS[3], m.id, false)
      elseif was == 'pending' then
        mark(KEYS[2], names[at], false)
      end
      if ARGV[p + 8] ~= '' then refunds[#refunds + 1] = ARGV[p + 8] end
      if m.report and reported[state] then tell[m] = now end
      was = state
    end
    if part < m.n then
      records[at] = was .. '|' .. due .. '|' .. count .. '|' .. name .. '|' .. since .. '|' .. carrier .. '|' .. ref
      set[#set + 1] = names[at]
      set[#set + 1] = records[at]
    end
  end
  if changed then rest(m, records, KEYS[1], KEYS[3], now, ARGV[1]) end
  a = a + 3 + 9 * n
end
for _, note in ipairs(refunds) do credit(KEYS[5], KEYS[6], 1, note, ARGV[2]) end
each('HSET', KEYS[8], set)
each('HSET', KEYS[9], notes)
flush()
local told = {}
for _, m in ipairs(list) do
  if m and tell[m] then
    redis.call('ZADD', KEYS[4], 'NX', tell[m], m.id)
    told[#told + 1] = whole(m, KEYS[7], names, records, KEYS[9])
  end
end
return told`

// deletePartSource removes a pending part and refunds it.
//
//	KEYS  1 pending  2 due  3 ended  4 credit  5 entries  6 parts
//	ARGV  1 the part's entry id  2 ms of now  3 ms until when the message is kept
//	      if it ends  4 JSON of the entry  5 entries kept
//	result 1 removed, 0 there is none
const deletePartSource = creditSource + restSource + `
local name = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], ARGV[1], 'LIMIT', 0, 1)[1]
if not name then return 0 end
local id, part = string.match(name, '^(%d+)/(%d+)$')
redis.call('ZREM', KEYS[1], name)
local list, _, records = read(KEYS[6], {id})
local m = list[1]
if not m then return 0 end
local at = m.before + 1 + part
local state, due, count, begun, _, carrier, ref = split(records[at])
if state ~= 'pending' then return 0 end
records[at] = 'removed|' .. due .. '|' .. string.format('%d', count + 1) .. '|' .. begun .. '|' .. ARGV[2] .. '|' .. carrier .. '|' .. ref
redis.call('HSET', KEYS[6], name, records[at])
credit(KEYS[4], KEYS[5], 1, ARGV[4], ARGV[5])
rest(m, records, KEYS[2], KEYS[3], ARGV[2], ARGV[3])
flush()
return 1`
