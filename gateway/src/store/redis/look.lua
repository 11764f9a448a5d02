-- Reads without claiming.
-- KEYS[1] the record
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local expires_at = redis.call('HGET', KEYS[1], 'expires_at')
if not expires_at or expires_at * 1000 <= now then
  return {string.format('%.0f', now)}
end
return {string.format('%.0f', now), redis.call('HGETALL', KEYS[1])}
