-- Opens the next generation of an accepted event. The rules of store::rules::forget.
-- KEYS[1] the record
-- ARGV    generation, token of the record that waits for its owner
local key = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function whole(number) return string.format('%.0f', number) end

local found = redis.call('HMGET', key, 'state', 'generation', 'expires_at')
if found[1] ~= 'accepted' or found[3] * 1000 <= now or tonumber(found[2]) ~= tonumber(ARGV[1]) then
  return {whole(now), '0'}
end
redis.call('HSET', key, 'state', 'processing', 'token', ARGV[2], 'lease_until', '0', 'first_at', whole(now),
  'generation', whole(found[2] + 1))
redis.call('HDEL', key, 'accepted_at', 'response')
return {whole(now), '1'}
