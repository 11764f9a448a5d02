variable "name" {
  description = "What the key's alias is called."
  type        = string
}

variable "log_group_names" {
  description = "The log groups that CloudWatch Logs may use the key for."
  type        = list(string)
  default     = []
}

variable "deletion_window_days" {
  description = "How many days a deleted key can still be restored."
  type        = number
  default     = 30
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}
