package redisstore

// loadMessagesSource reads messages.
//
//	KEYS  1 messages  2 parts  3 notes
//	ARGV  ids
//	result those that are there
const loadMessagesSource = recordsSource + `
local list, names, records = read(KEYS[2], ARGV)
local out = {}
for _, m in ipairs(list) do
  if m then out[#out + 1] = whole(m, KEYS[1], names, records, KEYS[3]) end
end
return out`

// forgetMessagesSource removes messages whose time is over.
//
//	KEYS  1 ended  2 all  3 untold  4 messages  5 parts  6 notes
//	ARGV  1 ms of now  2 how many at most
//	result how many it has removed
const forgetMessagesSource = recordsSource + `
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
local _, names = read(KEYS[5], ids)
local notes = {}
for _, name in ipairs(names) do
  notes[#notes + 1] = name .. '/why'
  notes[#notes + 1] = name .. '/line'
end
each('HDEL', KEYS[4], ids)
each('HDEL', KEYS[5], ids)
each('HDEL', KEYS[5], names)
each('HDEL', KEYS[6], notes)
for k = 1, 3 do each('ZREM', KEYS[k], ids) end
return #ids`

// earlyRefSource keeps a receipt that came before its id was bound.
//
//	KEYS  1 the id  2 its early receipts
//	ARGV  1 JSON of the receipt  2 ms to keep it  3 bytes kept at most
//	result which part the id names by now, else ''
const earlyRefSource = `
local to = redis.call('GET', KEYS[1])
if to then return to end
local list = redis.call('HGET', KEYS[2], 'list') or ''
if #list + #ARGV[1] > tonumber(ARGV[3]) then return '' end
redis.call('HSET', KEYS[2], 'list', list .. ARGV[1] .. ',')
if list == '' then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
return ''`

// ownEarlySource hands out the early receipts of an id to the first part that it
// names. They stay: who binds may have to do so again before they are recorded.
// For another part they mean nothing.
//
//	KEYS  1 early receipts
//	ARGV  1 <account>/<message id>/<part>/<number>
//	result JSON objects, each with a comma after it, or ''
const ownEarlySource = `
local r = redis.call('HMGET', KEYS[1], 'list', 'owner')
if not r[1] then return '' end
if r[2] and r[2] ~= ARGV[1] then
  redis.call('DEL', KEYS[1])
  return ''
end
redis.call('HSET', KEYS[1], 'owner', ARGV[1])
return r[1]`

// toldMessagesSource takes messages off those with something to report, unless
// more has become of them since.
//
//	KEYS  1 untold  2 parts
//	ARGV  two for each message: id, version that was told
const toldMessagesSource = recordsSource + `
local ids = {}
for a = 1, #ARGV, 2 do ids[#ids + 1] = ARGV[a] end
local list, _, records = read(KEYS[2], ids)
for i, m in ipairs(list) do
  local version = 0
  for k = 1, m and m.n or 0 do
    local _, _, count = split(records[m.before + k])
    version = version + count
  end
  if not m or version == tonumber(ARGV[2 * i]) then mark(KEYS[1], ids[i], false) end
end
flush()
return 1`
