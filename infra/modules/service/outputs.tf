output "dns_name" {
  description = "The load balancer's name: what the public name points to."
  value       = aws_lb.this.dns_name
}

output "zone_id" {
  description = "The load balancer's hosted zone, for an alias record."
  value       = aws_lb.this.zone_id
}

output "load_balancer_arn" {
  description = "The load balancer's ARN."
  value       = aws_lb.this.arn
}

output "load_balancer_suffix" {
  description = "The load balancer as CloudWatch knows it."
  value       = aws_lb.this.arn_suffix
}

output "target_group_suffix" {
  description = "The target group as CloudWatch knows it."
  value       = aws_lb_target_group.this.arn_suffix
}

output "security_group_id" {
  description = "The gateways' security group."
  value       = aws_security_group.gateway.id
}

output "cluster_name" {
  description = "The ECS cluster."
  value       = aws_ecs_cluster.this.name
}

output "service_name" {
  description = "The ECS service."
  value       = aws_ecs_service.this.name
}

output "task_role_arn" {
  description = "The gateways' role."
  value       = aws_iam_role.task.arn
}

output "task_policy" {
  description = "What the gateways' role is allowed, as JSON."
  value       = aws_iam_role_policy.task.policy
}

output "execution_policy" {
  description = "What Fargate's role is allowed, as JSON."
  value       = aws_iam_role_policy.execution.policy
}
