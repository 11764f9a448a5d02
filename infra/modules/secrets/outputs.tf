output "arns" {
  description = "The secrets' ARNs by the environment variable."
  value       = { for name, secret in aws_secretsmanager_secret.this : name => secret.arn }
}
