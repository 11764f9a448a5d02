variable "name" {
  description = "The queue's name without `.fifo`; the dead-letter queue's is `NAME-dead.fifo`."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{1,70}$", var.name))
    error_message = "The queue's name `${var.name}` must be 1 to 70 letters, digits, `_` and `-`: SQS allows 80 characters with `-dead.fifo`.\nhint: leave `.fifo` away, it is added."
  }
}

variable "retention_seconds" {
  description = "How long the queue keeps a message that nobody takes."
  type        = number
  default     = 345600

  validation {
    condition     = var.retention_seconds >= 60 && var.retention_seconds <= 1209600
    error_message = "The queue's retention of ${var.retention_seconds} s is not one of SQS's: 60 to 1209600 s (14 days).\nhint: give it in seconds."
  }
}

variable "dead_letter_retention_seconds" {
  description = "How long the dead-letter queue keeps a message. A FIFO dead-letter queue starts the clock anew, so this adds to the queue's retention, and claims outlive both."
  type        = number
  default     = 1209600

  validation {
    condition     = var.dead_letter_retention_seconds >= 60 && var.dead_letter_retention_seconds <= 1209600
    error_message = "The dead-letter queue's retention of ${var.dead_letter_retention_seconds} s is not one of SQS's: 60 to 1209600 s (14 days).\nhint: give it in seconds."
  }
}

variable "max_receive_count" {
  description = "How often a message is handed out before it goes to the dead-letter queue."
  type        = number
  default     = 3

  validation {
    condition     = var.max_receive_count >= 1 && var.max_receive_count <= 1000 && floor(var.max_receive_count) == var.max_receive_count
    error_message = "max_receive_count is ${var.max_receive_count}, but must be a whole number from 1 to 1000.\nhint: 3 lets a consumer crash twice."
  }
}

variable "visibility_timeout_seconds" {
  description = "How long a consumer has for a message before another gets it. Longer than the consumer's slowest work."
  type        = number
  default     = 60

  validation {
    condition     = var.visibility_timeout_seconds >= 1 && var.visibility_timeout_seconds <= 43200
    error_message = "The visibility timeout of ${var.visibility_timeout_seconds} s must be 1 to 43200 s.\nhint: with 0 every consumer would get every message at once."
  }
}

variable "kms_key_arn" {
  description = "The customer managed key that encrypts messages. Default: SQS's own (SSE-SQS). With it consumers need `kms:Decrypt`, as in `consumer_policy`."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}
