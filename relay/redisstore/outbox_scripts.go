package redisstore

// chunkSize is how many deliveries one round trip changes or loads, so that no
// other caller waits long behind it.
const chunkSize = 500

// createSource saves new deliveries. One to an ordered endpoint goes to the end
// of its line and is attempted if it is alone there.
//
//	KEYS  1 due  2 created  3 the set of state queued  4… two for each delivery:
//	      record, order
//	ARGV  1 ms of the lease's end  2… four for each delivery: id, static JSON, ms
//	      of creation, the endpoint if it is ordered, else empty
//	→ for each 1 created, 2 created and waits for its turn, 0 it exists already
//	and was left alone
const createSource = manySource + `
local out, k = {}, 4
for a = 2, #ARGV, 4 do
  local id, at, line = ARGV[a], ARGV[a + 2], ARGV[a + 3]
  local answer = 1 - redis.call('EXISTS', KEYS[k])
  if answer == 1 then
    local fields = {'static', ARGV[a + 1], 'created', at, 'state', 'queued', 'due', ARGV[1], 'leased', 1}
    if line ~= '' then
      local last = redis.call('ZREVRANGE', KEYS[k + 1], 0, 0, 'WITHSCORES')
      redis.call('ZADD', KEYS[k + 1], (last[2] or 0) + 1, id)
      fields[11], fields[12] = 'line', line
      if last[1] then
        answer = 2
        fields[8], fields[10], fields[13], fields[14] = 0, 0, 'waits', 'turn'
      end
    end
    redis.call('HSET', KEYS[k], unpack(fields))
    mark(KEYS[2], id, at)
    mark(KEYS[3], id, at)
    if answer == 1 then mark(KEYS[1], id, ARGV[1]) end
  end
  out[#out + 1] = answer
  k = k + 2
end
flush()
return out`

// statesSource gives scripts the position of each state's set in KEYS.
const statesSource = `
local at = {queued = 3, retrying = 4, delivered = 5, simulated = 6, dead = 7}
`

// finishSource records the outcomes of attempts, or that a breaker holds
// deliveries. An uncounted attempt whose reason is that of the last one is not
// added, so that our own faults and probes, which may repeat without end, do not
// grow the record without end. What was recorded before is left alone, and of one
// that has ended only the attempt is added. The one behind it in an ordered line
// comes due when it has ended. A record that cannot be read is an error after all
// others are recorded.
//
//	KEYS  1 due  2 lines  3-7 the sets by state  8… two for each: record, held
//	ARGV  1 what records' keys begin with  2 what orders' begin with
//	      3… ten for each: id, attempt JSON, empty if none was made, its time in
//	      ns, state, reason, ms of the next attempt, 0 if ended or held,
//	      uncounted, retention in ms, 0 = none, ms to which it is held, 0 = is
//	      not, endpoint
//	→ the ids of the deliveries whose turn has come
const finishSource = manySource + statesSource + `
local turns = {}
local function finish(record, held, id, attempt, time, state, reason, next, uncounted, kept, holds, endpoint)
  local r = redis.call('HMGET', record, 'state', 'ats', 'attempts', 'tries', 'created', 'reason', 'until', 'line')
  local old, ats = r[1], r[2] or ','
  if not old or (attempt ~= '' and string.find(ats, ',' .. time .. ',', 1, true)) then return end
  local fields = {}
  if attempt ~= '' and (uncounted ~= '1' or r[6] ~= reason) then
    fields = {'ats', ats .. time .. ',', 'attempts', (r[3] or '') .. attempt .. ','}
  end
  if at[old] >= 5 then
    each('HSET', record, fields)
    return
  end
  local tries, till, waits = tonumber(r[4] or 0), r[7] or '', ''
  if uncounted ~= '1' then tries = tries + 1 end
  mark(held, id, false)
  if holds ~= '0' then
    waits = 'breaker'
    if till == '' then till = holds end
    mark(held, id, till)
    redis.call('SADD', KEYS[2], endpoint)
  end
  for _, v in ipairs({'state', state, 'reason', reason, 'due', next, 'leased', 0, 'tries', tries, 'waits', waits, 'until', till}) do
    fields[#fields + 1] = v
  end
  redis.call('HSET', record, unpack(fields))
  if old ~= state then
    mark(KEYS[at[old]], id, false)
    mark(KEYS[at[state]], id, r[5])
  end
  mark(KEYS[1], id, next ~= '0' and next)
  if next ~= '0' or at[state] < 5 then return end
  if kept ~= '0' then redis.call('PEXPIRE', record, kept) end
  if not r[8] then return end
  local order = ARGV[2] .. r[8]
  redis.call('ZREM', order, id)
  local after = redis.call('ZRANGE', order, 0, 0)[1]
  if not after or redis.call('HGET', ARGV[1] .. after, 'waits') ~= 'turn' then return end
  local now = string.format('%.0f', math.floor(time / 1000000))
  redis.call('HSET', ARGV[1] .. after, 'due', now, 'waits', '')
  mark(KEYS[1], after, now)
  turns[#turns + 1] = after
end
local k, wrong = 8, nil
for a = 3, #ARGV, 10 do
  local done, why = pcall(finish, KEYS[k], KEYS[k + 1], unpack(ARGV, a, a + 9))
  if not done then wrong = type(why) == 'table' and why.err or tostring(why) end
  k = k + 2
end
flush()
if wrong then return redis.error_reply(wrong) end
return turns`

// takeSource leases deliveries that wait for a breaker.
//
//	KEYS  1 held  2 lines  3 due
//	ARGV  1 endpoint  2 how many  3 ms to which they wait at most, or +inf
//	      4 ms of the lease's end  5 what records' keys begin with
//	→ their ids
const takeSource = `
local out = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[3], 'LIMIT', 0, ARGV[2])) do
  redis.call('ZREM', KEYS[1], id)
  if redis.call('HGET', ARGV[5] .. id, 'waits') == 'breaker' then
    redis.call('HSET', ARGV[5] .. id, 'due', ARGV[4], 'leased', 1, 'waits', '')
    redis.call('ZADD', KEYS[3], ARGV[4], id)
    table.insert(out, id)
  end
end
if redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SREM', KEYS[2], ARGV[1]) end
return out`

// leaseSource takes a delivery that is due.
//
//	KEYS  1 record  2 due
//	ARGV  1 id  2 ms of now  3 ms of the lease's end
//	→ {1 taken or 0 not, field, value, …}; {0} if there is no such delivery
const leaseSource = `
local due = redis.call('ZSCORE', KEYS[2], ARGV[1])
local taken = 0
if due and tonumber(due) <= tonumber(ARGV[2]) then
  if redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('ZREM', KEYS[2], ARGV[1])
    return {0}
  end
  redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
  redis.call('HSET', KEYS[1], 'due', ARGV[3], 'leased', 1)
  taken = 1
end
local reply = redis.call('HGETALL', KEYS[1])
table.insert(reply, 1, taken)
return reply`

// moveSource renews or gives back one lease.
//
//	KEYS  1 record  2 due
//	ARGV  1 id  2 ms when it is due  3 leased until then (1) or free (0)
//	→ 1 moved, 0 not leased
const moveSource = `
if redis.call('HGET', KEYS[1], 'leased') ~= '1' then return 0 end
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('HSET', KEYS[1], 'due', ARGV[2], 'leased', ARGV[3])
return 1`

// replaySource puts one ended delivery back to queued, at the end of its line if
// its endpoint is ordered.
//
//	KEYS  1 record  2 due  3-7 the sets by state
//	ARGV  1 id  2 ms of now  3 include delivered and simulated
//	      4 what the keys of orders begin with
//	→ 1 changed, 0 not
const replaySource = statesSource + `
local r = redis.call('HMGET', KEYS[1], 'state', 'created', 'line')
local old = r[1]
if not old or at[old] < 5 or (old ~= 'dead' and ARGV[3] ~= '1') then return 0 end
redis.call('HSET', KEYS[1], 'state', 'queued', 'reason', '', 'due', ARGV[2], 'leased', 0, 'tries', 0, 'waits', '', 'until', '')
redis.call('PERSIST', KEYS[1])
redis.call('ZREM', KEYS[at[old]], ARGV[1])
redis.call('ZADD', KEYS[3], r[2], ARGV[1])
if r[3] then
  local last = redis.call('ZREVRANGE', ARGV[4] .. r[3], 0, 0, 'WITHSCORES')
  redis.call('ZADD', ARGV[4] .. r[3], (last[2] or 0) + 1, ARGV[1])
  if last[1] then
    redis.call('HSET', KEYS[1], 'due', 0, 'waits', 'turn')
    return 1
  end
end
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
return 1`

// sweepSource drops one member of the lists whose record has expired.
//
//	KEYS  1 record  2 created  3 the set of its state
//	ARGV  1 id
//	→ 1 dropped, 0 the record is there
const sweepSource = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1`
