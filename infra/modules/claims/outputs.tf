output "table" {
  description = "The table's name, for `store.dynamodb.table`."
  value       = aws_dynamodb_table.this.name
}

output "arn" {
  description = "The table's ARN."
  value       = aws_dynamodb_table.this.arn
}

output "gateway_statements" {
  description = "What the gateway's role is allowed, as IAM statements."
  value       = local.statements
}
