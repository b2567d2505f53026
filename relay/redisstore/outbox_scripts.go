package redisstore

// chunkSize is how many deliveries one round trip changes or loads, so that no
// other caller waits long behind it.
const chunkSize = 500

// createSource saves one new delivery. One to an ordered endpoint goes to the
// end of its line and is attempted if it is alone there.
//
//	KEYS  1 record  2 due  3 created  4 the set of state queued  5 order
//	ARGV  1 id  2 static JSON  3 ms of creation  4 ms of the lease's end
//	      5 the endpoint if it is ordered, else empty
//	→ 1 created, 2 created and waits for its turn, 0 it exists already and was
//	left alone
const createSource = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'static', ARGV[2], 'created', ARGV[3], 'state', 'queued', 'due', ARGV[4], 'leased', 1)
redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1])
redis.call('ZADD', KEYS[4], ARGV[3], ARGV[1])
if ARGV[5] ~= '' then
  local last = redis.call('ZREVRANGE', KEYS[5], 0, 0, 'WITHSCORES')
  redis.call('ZADD', KEYS[5], (last[2] or 0) + 1, ARGV[1])
  redis.call('HSET', KEYS[1], 'line', ARGV[5])
  if last[1] then
    redis.call('HSET', KEYS[1], 'due', 0, 'leased', 0, 'waits', 'turn')
    return 2
  end
end
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
return 1`

// statesSource gives scripts the position of each state's set in KEYS.
const statesSource = `
local at = {queued = 3, retrying = 4, delivered = 5, simulated = 6, dead = 7}
`

// finishSource records the outcome of one attempt, or that a breaker holds the
// delivery. An uncounted attempt whose reason is that of the last one is not
// added, so that our own faults and probes, which may repeat without end, do not
// grow the record without end. The one behind it in an ordered line comes due
// when it has ended.
//
//	KEYS  1 record  2 due  3-7 the sets by state  8 held  9 lines
//	ARGV  1 id  2 attempt JSON, empty if none was made  3 its time, ns  4 state
//	      5 reason  6 ms of the next attempt, 0 if ended or held  7 uncounted
//	      8 retention in ms, 0 = none  9 ms to which it is held, 0 = is not
//	      10 endpoint  11 what records' keys begin with  12 what order's begin with
//	→ 1 recorded, 0 recorded before, 2 only the attempt was added, -1 no such
//	delivery; the id of the delivery whose turn has come
const finishSource = statesSource + `
local r = redis.call('HMGET', KEYS[1], 'state', 'ats', 'attempts', 'tries', 'created', 'reason', 'until', 'line')
local old, ats = r[1], r[2] or ','
if not old then return -1 end
if ARGV[2] ~= '' then
  if string.find(ats, ',' .. ARGV[3] .. ',', 1, true) then return 0 end
  if ARGV[7] ~= '1' or r[6] ~= ARGV[5] then
    redis.call('HSET', KEYS[1], 'ats', ats .. ARGV[3] .. ',', 'attempts', (r[3] or '') .. ARGV[2] .. ',')
  end
end
if at[old] >= 5 then return 2 end
local tries, till, waits = tonumber(r[4] or 0), r[7] or '', ''
if ARGV[7] ~= '1' then tries = tries + 1 end
redis.call('ZREM', KEYS[8], ARGV[1])
if ARGV[9] ~= '0' then
  waits = 'breaker'
  if till == '' then till = ARGV[9] end
  redis.call('ZADD', KEYS[8], till, ARGV[1])
  redis.call('SADD', KEYS[9], ARGV[10])
end
redis.call('HSET', KEYS[1], 'state', ARGV[4], 'reason', ARGV[5], 'due', ARGV[6], 'leased', 0, 'tries', tries, 'waits', waits, 'until', till)
if old ~= ARGV[4] then
  redis.call('ZREM', KEYS[at[old]], ARGV[1])
  redis.call('ZADD', KEYS[at[ARGV[4]]], r[5], ARGV[1])
end
if ARGV[6] ~= '0' then
  redis.call('ZADD', KEYS[2], ARGV[6], ARGV[1])
  return 1
end
redis.call('ZREM', KEYS[2], ARGV[1])
if at[ARGV[4]] < 5 then return 1 end
if ARGV[8] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[8]) end
if not r[8] then return 1 end
local order = ARGV[12] .. r[8]
redis.call('ZREM', order, ARGV[1])
local next = redis.call('ZRANGE', order, 0, 0)[1]
if not next or redis.call('HGET', ARGV[11] .. next, 'waits') ~= 'turn' then return 1 end
local now = math.floor(ARGV[3] / 1000000)
redis.call('HSET', ARGV[11] .. next, 'due', now, 'waits', '')
redis.call('ZADD', KEYS[2], now, next)
return next`

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
