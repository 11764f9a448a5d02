output "configuration" {
  description = "The gateway's configuration as it is deployed: what `hookgate check --config FILE` can be asked about."
  value       = module.configuration.toml
}

output "claim_ttl_seconds" {
  description = "How long an event is remembered."
  value       = module.configuration.claim_ttl_seconds
}

output "dns_name" {
  description = "The load balancer's name: what the public name points to."
  value       = module.service.dns_name
}

output "zone_id" {
  description = "The load balancer's hosted zone, for an alias record."
  value       = module.service.zone_id
}

output "secret_arns" {
  description = "Where the secrets' values belong, by environment variable."
  value       = module.secrets.arns
}

output "queue_url" {
  description = "The queue that consumers read."
  value       = module.queue.url
}

output "queue_arn" {
  description = "The queue's ARN."
  value       = module.queue.arn
}

output "dead_letter_queue_url" {
  description = "The dead-letter queue."
  value       = module.queue.dead_letter_url
}

output "consumer_policy" {
  description = "What a consumer's role needs, as an IAM policy in JSON."
  value       = module.queue.consumer_policy
}

output "task_role_arn" {
  description = "The gateways' role."
  value       = module.service.task_role_arn
}

output "task_policy" {
  description = "What the gateways' role is allowed, as JSON."
  value       = module.service.task_policy
}

output "execution_policy" {
  description = "What Fargate's role is allowed, as JSON."
  value       = module.service.execution_policy
}

output "alarm_names" {
  description = "The alarms by what they are about."
  value       = module.observability.alarm_names
}

output "cache_id" {
  description = "The replication group of `store = \"redis\"`."
  value       = one(module.cache[*].id)
}
