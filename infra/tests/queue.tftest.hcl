# Queues in high-throughput mode, with a dead-letter queue, and what their users may do.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  name = "hookgate-events"
}

run "both_queues_are_fifo_in_high_throughput_mode" {
  command = apply

  module {
    source = "./modules/queue"
  }

  assert {
    condition = alltrue([
      for queue in [aws_sqs_queue.this, aws_sqs_queue.dead_letters] :
      queue.fifo_queue && !queue.content_based_deduplication && queue.deduplication_scope == "messageGroup" &&
      queue.fifo_throughput_limit == "perMessageGroupId" && queue.sqs_managed_sse_enabled
    ])
    error_message = "A queue is not as it must be."
  }

  assert {
    condition     = aws_sqs_queue.this.name == "hookgate-events.fifo" && aws_sqs_queue.dead_letters.name == "hookgate-events-dead.fifo"
    error_message = "The names are ${aws_sqs_queue.this.name} and ${aws_sqs_queue.dead_letters.name}."
  }

  assert {
    condition     = jsondecode(aws_sqs_queue.this.redrive_policy) == { deadLetterTargetArn = aws_sqs_queue.dead_letters.arn, maxReceiveCount = 3 }
    error_message = aws_sqs_queue.this.redrive_policy
  }

  assert {
    condition     = jsondecode(aws_sqs_queue_redrive_allow_policy.this.redrive_allow_policy) == { redrivePermission = "byQueue", sourceQueueArns = [aws_sqs_queue.this.arn] }
    error_message = aws_sqs_queue_redrive_allow_policy.this.redrive_allow_policy
  }
}

run "with_a_key_messages_are_encrypted_with_it_and_both_sides_may_use_it" {
  command = apply

  module {
    source = "./modules/queue"
  }

  variables {
    kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/1"
  }

  assert {
    condition     = aws_sqs_queue.this.kms_master_key_id == var.kms_key_arn && aws_sqs_queue.dead_letters.kms_master_key_id == var.kms_key_arn
    error_message = "The key is not the queue's."
  }

  assert {
    condition     = one([for statement in output.gateway_statements : statement.Action if statement.Sid == "QueueKey"]) == ["kms:Decrypt", "kms:GenerateDataKey"]
    error_message = jsonencode(output.gateway_statements)
  }

  assert {
    condition     = one([for statement in jsondecode(output.consumer_policy).Statement : statement.Action if statement.Sid == "QueueKey"]) == ["kms:Decrypt"]
    error_message = output.consumer_policy
  }
}

run "consumers_may_not_send" {
  command = apply

  module {
    source = "./modules/queue"
  }

  assert {
    condition     = !strcontains(output.consumer_policy, "SendMessage") && !strcontains(output.consumer_policy, "*")
    error_message = output.consumer_policy
  }
}

run "a_retention_of_fifteen_days_is_refused" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    retention_seconds = 1296000
  }

  expect_failures = [var.retention_seconds]
}

run "a_dead_letter_retention_of_a_second_is_refused" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    dead_letter_retention_seconds = 1
  }

  expect_failures = [var.dead_letter_retention_seconds]
}

run "a_receive_count_of_zero_is_refused" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    max_receive_count = 0
  }

  expect_failures = [var.max_receive_count]
}

run "a_visibility_timeout_of_zero_is_refused" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    visibility_timeout_seconds = 0
  }

  expect_failures = [var.visibility_timeout_seconds]
}

run "a_name_that_ends_in_fifo_is_refused" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    name = "events.fifo"
  }

  expect_failures = [var.name]
}
