output "url" {
  description = "The queue's URL, for `queue.sqs.url`."
  value       = aws_sqs_queue.this.url
}

output "arn" {
  description = "The queue's ARN."
  value       = aws_sqs_queue.this.arn
}

output "name" {
  description = "The queue's name, as CloudWatch knows it."
  value       = aws_sqs_queue.this.name
}

output "dead_letter_url" {
  description = "The dead-letter queue's URL."
  value       = aws_sqs_queue.dead_letters.url
}

output "dead_letter_name" {
  description = "The dead-letter queue's name, as CloudWatch knows it."
  value       = aws_sqs_queue.dead_letters.name
}

output "retention_seconds" {
  description = "How long the queue keeps messages."
  value       = var.retention_seconds
}

output "dead_letter_retention_seconds" {
  description = "How long the dead-letter queue keeps messages."
  value       = var.dead_letter_retention_seconds
}

output "max_message_bytes" {
  description = "The largest message that the queue takes, body and attributes, for `queue.max_message`."
  value       = local.max_message_bytes
}

output "gateway_statements" {
  description = "What the gateway's role is allowed, as IAM statements."
  value       = local.statements
}

output "consumer_policy" {
  description = "What a consumer's role needs, as an IAM policy in JSON. Attach it to the consumers' role."
  value       = jsonencode({ Version = "2012-10-17", Statement = local.consumer_statements })
}
