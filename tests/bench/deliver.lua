-- wrk: one GitHub-like delivery with a new id each time. The body and its signature come from a file.
local file = assert(io.open(os.getenv("LADDER_SIGNED"), "r"))
local signature = file:read("*l")
local body = file:read("*a"):gsub("\n$", "")
file:close()

local count = 0
local prefix = string.format("%d-%d-", os.time(), math.random(1, 1000000000))

request = function()
    count = count + 1
    return wrk.format("POST", "/in/t/gh", {
        ["Content-Type"] = "application/json",
        ["X-GitHub-Event"] = "issues",
        ["X-GitHub-Delivery"] = prefix .. count,
        ["X-Hub-Signature-256"] = signature,
    }, body)
end

done = function(summary, latency)
    io.write(string.format("RESULT %.0f %.3f %.3f %d\n", summary.requests / summary.duration * 1e6,
        latency:percentile(50) / 1000, latency:percentile(99) / 1000,
        summary.errors.status + summary.errors.read + summary.errors.timeout))
end
