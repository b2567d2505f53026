package redisstore

// saveMessagesSource charges for new messages, saves and queues them.
//
//	KEYS  1 credit  2 entries  3 due  4 pending  5 all  6 ended  7 once
//	      8… the messages
//	ARGV  1 credits  2 JSON of the entry  3 entries kept  4 ms of now
//	      5 order, '' for one without a key  6 answer  7 ms to know the key
//	      8… six for each message: id, parts, ms when due or of the lease's end,
//	      ms when it was to be sent, 1 if it wants reports, static JSON
//	result {1} saved, now or before; {0} not enough credit; {2} the key belongs
//	       to another order; {3, answer} the order was made before
const saveMessagesSource = creditSource + `
if redis.call('EXISTS', KEYS[8]) == 1 then return {1} end
if ARGV[5] ~= '' then
  local had = redis.call('GET', KEYS[7])
  if had then
    local cut = string.find(had, '|', 1, true)
    if string.sub(had, 1, cut - 1) ~= ARGV[5] then return {2} end
    return {3, string.sub(had, cut + 1)}
  end
end
if not credit(KEYS[1], KEYS[2], -tonumber(ARGV[1]), ARGV[2], ARGV[3]) then return {0} end
if ARGV[5] ~= '' then redis.call('SET', KEYS[7], ARGV[5] .. '|' .. ARGV[6], 'PX', ARGV[7]) end
for i = 8, #KEYS do
  local a = 8 + (i - 8) * 6
  local id = ARGV[a]
  redis.call('HSET', KEYS[i], 'static', ARGV[a + 5], 'n', ARGV[a + 1], 'at', ARGV[a + 3], 'due', ARGV[a + 2], 'v', 0)
  if ARGV[a + 4] == '1' then redis.call('HSET', KEYS[i], 'report', 1) end
  redis.call('ZADD', KEYS[3], ARGV[a + 2], id)
  redis.call('ZADD', KEYS[5], id, id)
  for n = 0, tonumber(ARGV[a + 1]) - 1 do
    redis.call('ZADD', KEYS[4], string.format('%.0f', tonumber(id) + n), id .. '/' .. string.format('%d', n))
  end
end
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[6], '-inf', ARGV[4], 'LIMIT', 0, 20)) do
  redis.call('ZREM', KEYS[5], gone)
  redis.call('ZREM', KEYS[6], gone)
end
return {1}`

// claimMessagesSource leases messages that are due.
//
//	KEYS  1 due
//	ARGV  1 ms of now  2 ms of the lease's end  3 how many at most
//	      4 what the messages' keys begin with
//	result {{field, value, …}, …}
const claimMessagesSource = `
local out = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])) do
  local key = ARGV[4] .. id
  if redis.call('EXISTS', key) == 0 then
    redis.call('ZREM', KEYS[1], id)
  else
    redis.call('HSET', key, 'due', ARGV[2])
    redis.call('ZADD', KEYS[1], ARGV[2], id)
    out[#out + 1] = redis.call('HGETALL', key)
  end
end
return out`

// moveMessageSource moves the time when a message is due, if a part of it waits.
//
//	KEYS  1 message  2 due
//	ARGV  1 id  2 ms
//	result 1 moved or 0
const moveMessageSource = `
local due = redis.call('HGET', KEYS[1], 'due')
if not due or due == '0' then return 0 end
redis.call('HSET', KEYS[1], 'due', ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
return 1`

// beginMessageSource writes down that parts are about to be handed to a carrier.
// A call that comes again, because its answer was lost, is answered as before;
// one that comes too late takes no part that came back since.
//
//	KEYS  1 message  2 due  3 pending
//	ARGV  1 id  2 carrier  3 ms of now  4 ms of the lease's end
//	      5 1 to take those that are sending as well  6 name of the call
//	      7… the parts
//	result {part, …} those that may be handed over
const beginMessageSource = `
local out = {}
if redis.call('EXISTS', KEYS[1]) == 0 then return out end
for i = 7, #ARGV do
  local n = ARGV[i]
  local r = redis.call('HMGET', KEYS[1], 's' .. n, 'b' .. n)
  local state, ours = r[1] or 'pending', r[2] == ARGV[6]
  if state == 'sending' and ours then
    out[#out + 1] = tonumber(n)
  elseif (state == 'pending' and not ours) or (state == 'sending' and ARGV[5] == '1') then
    redis.call('HSET', KEYS[1], 's' .. n, 'sending', 'c' .. n, ARGV[2], 't' .. n, ARGV[3], 'b' .. n, ARGV[6])
    redis.call('ZREM', KEYS[3], ARGV[1] .. '/' .. n)
    out[#out + 1] = tonumber(n)
  end
end
if #out > 0 then
  redis.call('HSET', KEYS[1], 'due', ARGV[4])
  redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
end
return out`

// messageSource changes the states of parts. move gives a part a state if that
// may follow on the one it has (of which before is a list with commas around
// each); rest then says when the message is due next, and has it expire when
// nothing of it waits: a part that is due now, or in a carrier's hands, keeps the
// lease that somebody has on it.
const messageSource = `
local function move(key, part, state, before, now)
  local was = redis.call('HGET', key, 's' .. part) or 'pending'
  if not string.find(before, ',' .. was .. ',', 1, true) then return nil end
  redis.call('HSET', key, 's' .. part, state, 't' .. part, now)
  redis.call('HINCRBY', key, 'v', 1)
  return was
end
local function rest(key, due, ended, id, now, kept)
  local r = redis.call('HMGET', key, 'n', 'at')
  local leased, next = false, nil
  for n = 0, tonumber(r[1]) - 1 do
    local p = redis.call('HMGET', key, 's' .. n, 'at' .. n)
    local state, at = p[1] or 'pending', tonumber(p[2] or r[2])
    if state == 'sending' or (state == 'pending' and at <= tonumber(now)) then leased = true end
    if state == 'pending' and (not next or at < next) then next = at end
  end
  if leased and redis.call('HGET', key, 'due') ~= '0' then return end
  if next then
    next = string.format('%.0f', next)
    redis.call('HSET', key, 'due', next)
    redis.call('ZADD', due, next, id)
    return
  end
  redis.call('HSET', key, 'due', 0)
  redis.call('ZREM', due, id)
  redis.call('PEXPIRE', key, kept)
  redis.call('ZADD', ended, string.format('%.0f', tonumber(now) + tonumber(kept)), id)
end
`

// settleMessageSource records what became of parts.
//
//	KEYS  1 message  2 due  3 pending  4 ended  5 untold  6 credit  7 entries
//	ARGV  1 id  2 ms of now  3 ms to keep it from its end  4 entries kept
//	      5… eleven for each part: number, state, the states it may come after,
//	      carrier, carrier's id, reason, delivery report, ms of the next attempt,
//	      JSON of the entry if the credit goes back else '', 1 if the state is
//	      one to report, ms of the change
//	result {field, value, …} if the account wants a report; {} else
const settleMessageSource = creditSource + messageSource + `
if redis.call('EXISTS', KEYS[1]) == 0 then return {} end
local told, changed = false, false
for a = 5, #ARGV, 11 do
  local n, state = ARGV[a], ARGV[a + 1]
  local was = move(KEYS[1], n, state, ARGV[a + 2], ARGV[a + 10])
  local more = {}
  if ARGV[a + 3] ~= '' then more[#more + 1] = 'c' .. n; more[#more + 1] = ARGV[a + 3] end
  if ARGV[a + 4] ~= '' then more[#more + 1] = 'r' .. n; more[#more + 1] = ARGV[a + 4] end
  if was then
    changed = true
    if ARGV[a + 5] ~= '' then more[#more + 1] = 'why' .. n; more[#more + 1] = ARGV[a + 5] end
    if ARGV[a + 6] ~= '' then more[#more + 1] = 'line' .. n; more[#more + 1] = ARGV[a + 6] end
    if state == 'pending' then
      more[#more + 1] = 'at' .. n; more[#more + 1] = ARGV[a + 7]
      redis.call('ZADD', KEYS[3], string.format('%.0f', tonumber(ARGV[1]) + tonumber(n)), ARGV[1] .. '/' .. n)
      redis.call('PERSIST', KEYS[1])
      redis.call('ZREM', KEYS[4], ARGV[1])
    elseif was == 'pending' then
      redis.call('ZREM', KEYS[3], ARGV[1] .. '/' .. n)
    end
    if ARGV[a + 8] ~= '' then credit(KEYS[6], KEYS[7], 1, ARGV[a + 8], ARGV[4]) end
    if ARGV[a + 9] == '1' then told = true end
  end
  if #more > 0 then redis.call('HSET', KEYS[1], unpack(more)) end
end
if changed then rest(KEYS[1], KEYS[2], KEYS[4], ARGV[1], ARGV[2], ARGV[3]) end
if not told or not redis.call('HGET', KEYS[1], 'report') then return {} end
redis.call('ZADD', KEYS[5], 'NX', ARGV[2], ARGV[1])
return redis.call('HGETALL', KEYS[1])`

// deletePartSource removes a pending part and refunds it.
//
//	KEYS  1 pending  2 due  3 ended  4 credit  5 entries
//	ARGV  1 the part's entry id  2 what the messages' keys begin with  3 ms of now
//	      4 ms to keep the message from its end  5 JSON of the entry  6 entries kept
//	result 1 removed, 0 there is none
const deletePartSource = creditSource + messageSource + `
local found = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], ARGV[1], 'LIMIT', 0, 1)
if #found == 0 then return 0 end
local id, n = string.match(found[1], '^(%d+)/(%d+)$')
local key = ARGV[2] .. id
redis.call('ZREM', KEYS[1], found[1])
if redis.call('EXISTS', key) == 0 then return 0 end
if not move(key, n, 'removed', ',pending,', ARGV[3]) then return 0 end
credit(KEYS[4], KEYS[5], 1, ARGV[5], ARGV[6])
rest(key, KEYS[2], KEYS[3], id, ARGV[3], ARGV[4])
return 1`

// bindRefSource keeps which part a carrier's id names. The receipts that came
// before stay with it: who binds may have to do so again before they are
// recorded. For another part they mean nothing.
//
//	KEYS  1 the id
//	ARGV  1 <account>/<message id>/<part>/<number>  2 ms to keep it
//	result the receipts that came before, or ''
const bindRefSource = `
local r = redis.call('HMGET', KEYS[1], 'to', 'early')
local early = r[2] or ''
if r[1] and r[1] ~= ARGV[1] then
  redis.call('HDEL', KEYS[1], 'early')
  early = ''
end
redis.call('HSET', KEYS[1], 'to', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return early`

// earlyRefSource keeps a receipt that came before its id was bound.
//
//	KEYS  1 the id
//	ARGV  1 JSON of the receipt  2 ms to keep it  3 bytes kept at most
//	result which part the id names by now, else ''
const earlyRefSource = `
local r = redis.call('HMGET', KEYS[1], 'to', 'early')
if r[1] then return r[1] end
local early = (r[2] or '')
if #early + #ARGV[1] > tonumber(ARGV[3]) then return '' end
redis.call('HSET', KEYS[1], 'early', early .. ARGV[1] .. ',')
if not r[2] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return ''`

// toldMessageSource takes a message off those with something to report.
//
//	KEYS  1 message  2 untold
//	ARGV  1 id  2 version that was told
//	result 1 taken off or 0
const toldMessageSource = `
local v = redis.call('HGET', KEYS[1], 'v')
if v and v ~= ARGV[2] then return 0 end
return redis.call('ZREM', KEYS[2], ARGV[1])`
