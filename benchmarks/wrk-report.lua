-- Prints what wrk measured as one JSON line, so that nobody has to parse its prose. After `--` it takes a
-- method and a file whose content is the request's body.
init = function(words)
  if #words < 2 then return end
  local file = assert(io.open(words[2], "rb"))
  wrk.method = words[1]
  wrk.body = file:read("*a")
  file:close()
end

done = function(summary, latency, requests)
  io.write(string.format(
    '{"requests":%d,"microseconds":%d,"bytes":%d,"p50_us":%d,"p90_us":%d,"p99_us":%d,"max_us":%d,' ..
    '"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}}\n',
    summary.requests, summary.duration, summary.bytes,
    latency:percentile(50), latency:percentile(90), latency:percentile(99), latency.max,
    summary.errors.connect, summary.errors.read, summary.errors.write,
    summary.errors.status, summary.errors.timeout))
end
