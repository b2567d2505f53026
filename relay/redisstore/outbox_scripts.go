package redisstore

// chunkSize is how many deliveries one round trip changes or loads, so that no
// other caller waits long behind it.
const chunkSize = 500

// createSource saves one new delivery.
//
//	KEYS  1 record  2 due  3 created  4 the set of state queued
//	ARGV  1 id  2 static JSON  3 ms of creation  4 ms of the lease's end
//	→ 1 created, 0 it exists already and was left alone
const createSource = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'static', ARGV[2], 'created', ARGV[3], 'state', 'queued', 'due', ARGV[4], 'leased', 1)
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1])
redis.call('ZADD', KEYS[4], ARGV[3], ARGV[1])
return 1`

// statesSource gives scripts the position of each state's set in KEYS.
const statesSource = `
local at = {queued = 3, retrying = 4, delivered = 5, simulated = 6, dead = 7}
`

// finishSource records the outcome of one attempt. An uncounted attempt whose
// reason is that of the last one is not added, so that our own faults, which
// may repeat without end, do not grow the record without end.
//
//	KEYS  1 record  2 due  3-7 the sets by state
//	ARGV  1 id  2 attempt JSON  3 its time, ns  4 state  5 reason
//	      6 ms of the next attempt, 0 if ended  7 uncounted  8 retention in ms, 0 = none
//	→ 1 recorded, 0 recorded before, 2 only the attempt was added, -1 no such delivery
const finishSource = statesSource + `
local r = redis.call('HMGET', KEYS[1], 'state', 'ats', 'attempts', 'tries', 'created', 'reason')
local old, ats = r[1], r[2] or ','
if not old then return -1 end
if string.find(ats, ',' .. ARGV[3] .. ',', 1, true) then return 0 end
local repeated = ARGV[7] == '1' and r[6] == ARGV[5]
if not repeated then
  redis.call('HSET', KEYS[1], 'ats', ats .. ARGV[3] .. ',', 'attempts', (r[3] or '') .. ARGV[2] .. ',')
end
if at[old] >= 5 then return 2 end
local tries = tonumber(r[4] or 0)
if ARGV[7] ~= '1' then tries = tries + 1 end
redis.call('HSET', KEYS[1], 'state', ARGV[4], 'reason', ARGV[5], 'due', ARGV[6], 'leased', 0, 'tries', tries)
if ARGV[6] == '0' then
  redis.call('ZREM', KEYS[2], ARGV[1])
  if ARGV[8] ~= '0' then redis.call('PEXPIRE', KEYS[1], ARGV[8]) end
else
  redis.call('ZADD', KEYS[2], ARGV[6], ARGV[1])
end
if old ~= ARGV[4] then
  redis.call('ZREM', KEYS[at[old]], ARGV[1])
  redis.call('ZADD', KEYS[at[ARGV[4]]], r[5], ARGV[1])
end
return 1`

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

// replaySource puts one ended delivery back to queued.
//
//	KEYS  1 record  2 due  3-7 the sets by state
//	ARGV  1 id  2 ms of now  3 include delivered and simulated
//	→ 1 changed, 0 not
const replaySource = statesSource + `
local r = redis.call('HMGET', KEYS[1], 'state', 'created')
local old = r[1]
if not old or at[old] < 5 or (old ~= 'dead' and ARGV[3] ~= '1') then return 0 end
redis.call('HSET', KEYS[1], 'state', 'queued', 'reason', '', 'due', ARGV[2], 'leased', 0, 'tries', 0)
redis.call('PERSIST', KEYS[1])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('ZREM', KEYS[at[old]], ARGV[1])
redis.call('ZADD', KEYS[3], r[2], ARGV[1])
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
