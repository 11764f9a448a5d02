output "dns_name" {
  description = "What the public name points to."
  value       = module.hookgate.dns_name
}

output "configuration" {
  description = "The gateway's configuration as it is deployed."
  value       = module.hookgate.configuration
}

output "secret_arns" {
  description = "Where the secrets' values belong."
  value       = module.hookgate.secret_arns
}
