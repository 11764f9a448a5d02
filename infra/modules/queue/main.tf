# The queue that accepted events go to, and the one for messages that no consumer can take. Both are FIFO in
# high-throughput mode: deduplication and quotas count for each message group, so that tenants never meet.

resource "aws_sqs_queue" "dead_letters" {
  name                              = "${var.name}-dead.fifo"
  fifo_queue                        = true
  content_based_deduplication       = false
  deduplication_scope               = "messageGroup"
  fifo_throughput_limit             = "perMessageGroupId"
  message_retention_seconds         = var.dead_letter_retention_seconds
  max_message_size                  = local.max_message_bytes
  kms_master_key_id                 = var.kms_key_arn
  kms_data_key_reuse_period_seconds = var.kms_key_arn == null ? null : 300
  sqs_managed_sse_enabled           = var.kms_key_arn == null ? true : null
  tags                              = var.tags
}

resource "aws_sqs_queue" "this" {
  name                              = "${var.name}.fifo"
  fifo_queue                        = true
  content_based_deduplication       = false
  deduplication_scope               = "messageGroup"
  fifo_throughput_limit             = "perMessageGroupId"
  message_retention_seconds         = var.retention_seconds
  visibility_timeout_seconds        = var.visibility_timeout_seconds
  max_message_size                  = local.max_message_bytes
  kms_master_key_id                 = var.kms_key_arn
  kms_data_key_reuse_period_seconds = var.kms_key_arn == null ? null : 300
  sqs_managed_sse_enabled           = var.kms_key_arn == null ? true : null
  tags                              = var.tags

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letters.arn
    maxReceiveCount     = var.max_receive_count
  })
}

# No other queue may move its dead letters here.
resource "aws_sqs_queue_redrive_allow_policy" "this" {
  queue_url = aws_sqs_queue.dead_letters.id

  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.this.arn]
  })
}

locals {
  # The most that this version of the provider knows, though SQS takes 1 MiB since August 2025.
  max_message_bytes = 262144

  key = var.kms_key_arn == null ? [] : [var.kms_key_arn]

  # Exactly the calls of gateway/src/queue/sqs.rs, and those by which it reads depth and retention. With a key,
  # SQS asks for one to encrypt with (GenerateDataKey), and reads it again once it has it (Decrypt).
  statements = concat(
    [
      {
        Sid      = "Send"
        Effect   = "Allow"
        Action   = ["sqs:GetQueueAttributes", "sqs:SendMessage"]
        Resource = [aws_sqs_queue.this.arn]
      },
      {
        Sid      = "ReadRetentionOfDeadLetters"
        Effect   = "Allow"
        Action   = ["sqs:GetQueueAttributes", "sqs:GetQueueUrl"]
        Resource = [aws_sqs_queue.dead_letters.arn]
      },
    ],
    [
      for key in local.key : {
        Sid      = "QueueKey"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource = [key]
      }
    ],
  )

  consumer_statements = concat(
    [
      {
        Sid    = "Receive"
        Effect = "Allow"
        Action = [
          "sqs:ChangeMessageVisibility",
          "sqs:DeleteMessage",
          "sqs:GetQueueAttributes",
          "sqs:ReceiveMessage",
        ]
        Resource = [aws_sqs_queue.this.arn]
      },
    ],
    [
      for key in local.key : {
        Sid      = "QueueKey"
        Effect   = "Allow"
        Action   = ["kms:Decrypt"]
        Resource = [key]
      }
    ],
  )
}
