output "arn" {
  description = "The web ACL's ARN."
  value       = aws_wafv2_web_acl.this.arn
}
