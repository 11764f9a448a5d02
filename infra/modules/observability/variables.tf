variable "name" {
  description = "What alarms and dashboard begin with."
  type        = string
}

variable "queue_name" {
  description = "The queue."
  type        = string
}

variable "dead_letter_name" {
  description = "The dead-letter queue."
  type        = string
}

variable "high_water" {
  description = "How many messages the queue may hold: `queue.pressure.high_water`."
  type        = number
}

variable "table" {
  description = "The claim table, where claims are in DynamoDB."
  type        = string
  default     = null
}

variable "cache_member_ids" {
  description = "The claim store's nodes, where claims are in Redis."
  type        = list(string)
  default     = []
}

variable "load_balancer" {
  description = "`network` or `application`."
  type        = string
}

variable "load_balancer_suffix" {
  description = "The load balancer as CloudWatch knows it."
  type        = string
}

variable "target_group_suffix" {
  description = "The target group as CloudWatch knows it."
  type        = string
}

variable "cluster_name" {
  description = "The ECS cluster."
  type        = string
}

variable "service_name" {
  description = "The ECS service; also the label `service` of the gateways' metrics."
  type        = string
}

variable "metrics_namespace" {
  description = "The namespace of the gateways' metrics in CloudWatch."
  type        = string
  default     = "Hookgate"
}

variable "alarm_actions" {
  description = "Whom alarms tell, as ARNs of SNS topics. With none they only show."
  type        = list(string)
}

variable "thresholds" {
  description = "When alarms ring. `least_deliveries`: how many deliveries a minute there must be for a ratio to mean anything."
  type = object({
    oldest_message_seconds = optional(number, 900)
    depth_percent          = optional(number, 70)
    percent_5xx            = optional(number, 5)
    percent_429            = optional(number, 5)
    least_deliveries       = optional(number, 20)
    plugin_faults          = optional(number, 0)
    p99_seconds            = optional(number, 2)
    mean_step_seconds      = optional(number, 0.25)
    cache_memory_percent   = optional(number, 70)
  })
  default = {}

  validation {
    condition     = var.thresholds.depth_percent > 0 && var.thresholds.depth_percent < 80
    error_message = "thresholds.depth_percent is ${var.thresholds.depth_percent}: the alarm should ring before tenants are refused, at four fifths of high_water.\nhint: use less than 80."
  }
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}
