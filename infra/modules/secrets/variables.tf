variable "prefix" {
  description = "What the secrets' names begin with, before a `/`."
  type        = string
}

variable "names" {
  description = "What each secret is, by the environment variable that the gateway finds it in. No values: those never stand in Terraform."
  type        = map(string)

  validation {
    condition     = alltrue([for name in keys(var.names) : can(regex("^[A-Z][A-Z0-9_]*$", name))])
    error_message = "Not every secret's name is one of an environment variable: ${join(", ", [for name in keys(var.names) : name if !can(regex("^[A-Z][A-Z0-9_]*$", name))])}.\nhint: write them like GITHUB_WEBHOOK_SECRET."
  }
}

variable "kms_key_arn" {
  description = "The customer managed key that encrypts the secrets."
  type        = string
}

variable "recovery_window_days" {
  description = "How many days a deleted secret can still be restored; 0 deletes it at once."
  type        = number
  default     = 30
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}
