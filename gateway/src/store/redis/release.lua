-- Gives a claim up, if the token still holds it. The rule of store::rules::releases.
-- KEYS[1] the record
-- ARGV    token, 'delete' or 'end'
local key = KEYS[1]
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))

local found = redis.call('HMGET', key, 'state', 'token')
if found[1] ~= 'processing' or found[2] ~= ARGV[1] then
  return {now, 'kept'}
end
if ARGV[2] == 'delete' then
  redis.call('DEL', key)
else
  redis.call('HSET', key, 'lease_until', '0')
end
return {now, 'released'}
