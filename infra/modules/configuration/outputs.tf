output "toml" {
  description = "The configuration's text."
  value       = local.toml

  precondition {
    condition     = local.claim_ttl > local.least_ttl
    error_message = "A claim TTL of ${local.claim_ttl} s is too short: the queue keeps messages for ${var.retention_seconds} s, its dead-letter queue for ${var.dead_letter_retention_seconds} s more, and a claim must outlive both by more than a day, so it needs more than ${local.least_ttl} s, or an event could be sent twice.\nhint: leave claim_ttl_seconds out (it would be ${local.least_ttl + local.day} s), or shorten the retentions of the queues."
  }

  precondition {
    condition     = local.claim_ttl > var.retry_window_seconds
    error_message = "A claim TTL of ${local.claim_ttl} s is too short: providers retry for ${var.retry_window_seconds} s, and a delivery that comes after its claim is gone is a new event.\nhint: leave claim_ttl_seconds out, or give at least ${var.retry_window_seconds + local.day} s."
  }

  precondition {
    condition     = (var.redis == null) != (var.table == null)
    error_message = "Claims are kept either in DynamoDB or in Redis.\nhint: give `table` or `redis`, not both."
  }

  precondition {
    condition     = local.low_water < var.pressure.high_water
    error_message = "pressure.low_water is ${local.low_water}, but must be less than pressure.high_water, which is ${var.pressure.high_water}.\nhint: leave low_water out: it is four fifths of high_water then."
  }

  precondition {
    condition     = length(local.toml) <= 49152
    error_message = "The configuration has ${length(local.toml)} bytes, but goes to the task as an environment variable, and a task's definition has at most 65536 bytes in all, quotes escaped.\nhint: split the tenants between two deployments."
  }
}

output "claim_ttl_seconds" {
  description = "How long an event is remembered."
  value       = local.claim_ttl
}

output "low_water" {
  description = "From how many messages on tenants above their fair share are refused."
  value       = local.low_water
}

output "needed_variables" {
  description = "The environment variables that the configuration names."
  value       = local.needed
}
