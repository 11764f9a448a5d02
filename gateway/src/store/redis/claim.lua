-- Claims an event: set if absent, taken over if lapsed, else told whose it is. The rules of store::rules::claim.
-- KEYS[1] the record
-- ARGV    token, lease (ms), life (ms), group, queue, body_sha256, owner to take over from or '', version,
--         longest possible lease (ms)
local key = KEYS[1]
local token, take_over = ARGV[1], ARGV[7]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function whole(number) return string.format('%.0f', number) end

local lease_until = now + ARGV[2]
local expires_at = math.ceil((now + ARGV[3]) / 1000)
-- The record ends by the conditions on expires_at. The key's own end is housekeeping, a minute later.
local function write(...)
  redis.call('HSET', key, ...)
  redis.call('PEXPIREAT', key, whole(expires_at * 1000 + 60000))
end

local found = redis.call('HMGET', key, 'state', 'token', 'lease_until', 'expires_at', 'generation', 'group',
  'queue', 'first_at')
local state, owner = found[1], found[2]

if not state or found[4] * 1000 <= now then
  write('version', ARGV[8], 'state', 'processing', 'token', token, 'lease_until', whole(lease_until),
    'first_at', whole(now), 'generation', '0', 'group', ARGV[4], 'queue', ARGV[5], 'body_sha256', ARGV[6],
    'expires_at', whole(expires_at))
  redis.call('HDEL', key, 'accepted_at', 'response')
  return {whole(now), 'owner', '0', ARGV[4], ARGV[5], whole(now), '0'}
end

if state == 'accepted' then
  return {whole(now), 'duplicate', redis.call('HGETALL', key)}
end

local left = found[3] - now
if left > 0 and left <= tonumber(ARGV[9]) and owner ~= token and owner ~= take_over then
  return {whole(now), 'in flight', whole(left), owner}
end

-- Only token, lease and life change: what was recorded survives any number of takeovers.
expires_at = math.max(expires_at, tonumber(found[4]))
write('token', token, 'lease_until', whole(lease_until), 'expires_at', whole(expires_at))
return {whole(now), 'owner', found[5], found[6], found[7], found[8], '1'}
