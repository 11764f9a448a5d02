-- Records that the message is in the queue. The rules of store::rules::settles.
-- KEYS[1] the record
-- ARGV    generation, expires_at (s), '1' to write something in any case (what is waited for at replicas has to
--         be a write of this connection), then the record as field and value
local key = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function whole(number) return string.format('%.0f', number) end

local found = redis.call('HMGET', key, 'state', 'generation', 'expires_at', 'version')
local absent = not found[1] or found[3] * 1000 <= now
if not absent and (found[1] ~= 'processing' or tonumber(found[2]) > tonumber(ARGV[1])) then
  if ARGV[3] == '1' then
    redis.call('HSET', key, 'version', found[4])
  end
  return {whole(now), 'kept'}
end

local record, has = {}, {}
for i = 4, #ARGV do
  record[#record + 1] = ARGV[i]
  if i % 2 == 0 then has[ARGV[i]] = true end
end
-- Written first, cleaned up behind it: a server that is out of memory refuses the first write alone.
redis.call('HSET', key, unpack(record))
for _, field in ipairs({'accepted_at', 'response'}) do
  if not has[field] then redis.call('HDEL', key, field) end
end
redis.call('PEXPIREAT', key, whole(ARGV[2] * 1000 + 60000))
return {whole(now), 'settled'}
