package redisstore

import "github.com/redis/go-redis/v9"

// closeGroup is a function of the scripts below. It makes an open group ready to
// go on and remembers its parts, so that one that comes again is known. A group
// in which every part is one of the message before it, with the same reference,
// is a repetition and is dropped, if it began within twice the wait after that
// message. The message itself is remembered for a day at least: a gateway that
// died processes some of its parts again when it is back, and an operator may
// replay them.
//
// parts maps a part's number to "<digest>|<id>|<JSON>", copies are the ids of
// parts that repeated one of them. It returns the id of the
// message, that of the part with the lowest number, and a JSON array of the
// parts; or the id of the message that is repeated, and "".
func closeGroup() string {
	return `
local open, finished, due, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, lease, wait, group = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4]
local function split(part)
  local _, last, digest, holder = string.find(part, '^(%x+)|([^|]*)|')
  return digest, holder, string.sub(part, last + 1)
end
local function read_open()
  local flat, parts, copies, count = redis.call('HGETALL', open), {}, {}, 0
  for i = 1, #flat, 2 do
    if string.sub(flat[i], 1, 5) == 'copy:' then
      copies[#copies + 1] = string.sub(flat[i], 6)
    else
      parts[flat[i]] = flat[i + 1]
      count = count + 1
    end
  end
  return parts, count, copies
end
local function close(parts, copies, due_at)
  local numbers, list, seen = {}, {}, {}
  for n in pairs(parts) do numbers[#numbers + 1] = tonumber(n) end
  table.sort(numbers)
  local score = redis.call('ZSCORE', due, 'o:' .. group)
  local began = score and tonumber(score) - wait or now
  local repeated, id = began <= tonumber(redis.call('HGET', finished, 'until') or '-1'), nil
  for _, n in ipairs(numbers) do
    local name = string.format('%d', n)
    local digest, holder, json = split(parts[name])
    id = id or holder
    if redis.call('HGET', finished, 'part:' .. name) ~= digest then repeated = false end
    list[#list + 1] = json
    seen[#seen + 1] = {name, digest, holder}
  end
  redis.call('DEL', open)
  redis.call('ZREM', due, 'o:' .. group)
  if repeated then
    local before = redis.call('HGET', finished, 'id')
    for _, s in ipairs(seen) do redis.call('HSET', finished, 'of:' .. s[3], before) end
    return before, ''
  end
  local all = '[' .. table.concat(list, ',') .. ']'
  redis.call('DEL', finished)
  redis.call('HSET', finished, 'id', id, 'all', all, 'until', string.format('%d', now + 2 * wait))
  for _, s in ipairs(seen) do
    redis.call('HSET', finished, 'part:' .. s[1], s[2], 'of:' .. s[3], id)
  end
  for _, copy in ipairs(copies) do redis.call('HSET', finished, 'of:' .. copy, id) end
  redis.call('PEXPIRE', finished, math.max(2 * wait, 86400000))
  redis.call('HSET', ready, 'r:' .. group .. ':' .. id, all)
  redis.call('ZADD', due, due_at, 'r:' .. group .. ':' .. id)
  return id, all
end
`
}

// addPart takes a part in. A different part in the place of one that waits means
// that the reference is used again: what waited goes on at once without the
// parts that are missing, and the part begins a new message.
//
//	KEYS  open, finished, due, ready, parked of this arrival
//	ARGV  now, end of the lease, wait (ms), group, number, total, digest, id, JSON
//	result state, holder, JSON array of parts; see inbound.PartState
func addPart() *redis.Script {
	return redis.NewScript(closeGroup() + `
local number, total, digest, id, json = ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8], ARGV[9]
local parked = redis.call('GET', KEYS[5])
if parked then
  local _, last, holder = string.find(parked, '^([^|]*)|')
  return {'again', holder, string.sub(parked, last + 1)}
end
local joined = redis.call('HGET', finished, 'of:' .. id)
if joined then
  local all = redis.call('HGET', ready, 'r:' .. group .. ':' .. joined)
  if all then return {'complete', joined, all} end
  return {'again', joined, redis.call('HGET', finished, 'all')}
end
local parts, count, copies = read_open()
if parts[number] then
  local was, holder = split(parts[number])
  if holder == id then return {'waiting', '', ''} end
  if was == digest then
    redis.call('HSET', open, 'copy:' .. id, '')
    return {'duplicate', holder, ''}
  end
  close(parts, copies, now)
  parts, count, copies = {}, 0, {}
end
parts[number] = digest .. '|' .. id .. '|' .. json
if count + 1 == total then
  local holder, all = close(parts, copies, lease)
  if all == '' then return {'duplicate', holder, ''} end
  return {'complete', holder, all}
end
redis.call('HSET', open, number, parts[number])
redis.call('ZADD', due, 'NX', now + wait, 'o:' .. group)
return {'waiting', '', ''}`)
}

// takeGroup leases a group that is due, for one caller only.
//
//	KEYS  open, finished, due, ready
//	ARGV  now, end of the lease, wait (ms), group, member of due
//	result id, JSON array of parts; "" when there is nothing to do
func takeGroup() *redis.Script {
	return redis.NewScript(closeGroup() + `
local member = ARGV[5]
local score = redis.call('ZSCORE', due, member)
if not score or tonumber(score) > now then return {'', ''} end
if string.sub(member, 1, 2) == 'r:' then
  local all = redis.call('HGET', ready, member)
  if not all then
    redis.call('ZREM', due, member)
    return {'', ''}
  end
  redis.call('ZADD', due, lease, member)
  return {string.sub(member, #group + 4), all}
end
local parts, count, copies = read_open()
if count == 0 then
  redis.call('ZREM', due, member)
  return {'', ''}
end
local id, all = close(parts, copies, lease)
return {id, all}`)
}
