output "node" {
  description = "The primary, for `store.redis.nodes`."
  value       = "rediss://${aws_elasticache_replication_group.this.primary_endpoint_address}:${local.port}"
}

output "id" {
  description = "The replication group's id."
  value       = aws_elasticache_replication_group.this.id
}

output "member_ids" {
  description = "The nodes as CloudWatch knows them."
  value       = [for number in range(1, 2 + var.replicas) : "${var.name}-${format("%03d", number)}"]
}

output "security_group_id" {
  description = "The security group of the servers."
  value       = aws_security_group.this.id
}

output "port" {
  description = "The servers' port."
  value       = local.port
}
