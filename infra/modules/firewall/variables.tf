variable "name" {
  description = "The rule's name."
  type        = string
}

variable "load_balancer_arn" {
  description = "The application load balancer that it stands before."
  type        = string
}

variable "requests_per_5_minutes" {
  description = "How many requests one address may send in any five minutes. Providers send from few addresses: generous, or it refuses real events."
  type        = number
  default     = 100000

  validation {
    condition     = var.requests_per_5_minutes >= 10 && var.requests_per_5_minutes <= 2000000000
    error_message = "requests_per_5_minutes is ${var.requests_per_5_minutes}, but WAF takes 10 to 2000000000.\nhint: count what your busiest provider sends in five minutes, and allow ten times that."
  }
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}
