variable "name" {
  description = "The replication group's name."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,39}$", var.name))
    error_message = "`${var.name}` is no name of a replication group.\nhint: use 1 to 40 lower-case letters, digits and hyphens, a letter first."
  }
}

variable "vpc_id" {
  description = "The VPC."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets, in two zones at least where there are replicas."
  type        = list(string)
}

variable "gateway_security_group_id" {
  description = "The security group of the gateways, which alone may connect."
  type        = string
}

variable "kms_key_arn" {
  description = "The customer managed key that encrypts what is on disk."
  type        = string
}

variable "engine" {
  description = "`valkey` or `redis`."
  type        = string
  default     = "valkey"

  validation {
    condition     = contains(["valkey", "redis"], var.engine)
    error_message = "The engine `${var.engine}` keeps no claims.\nhint: use \"valkey\" or \"redis\"."
  }
}

variable "engine_version" {
  description = "The engine's version."
  type        = string
  default     = "8.0"
}

variable "parameter_family" {
  description = "The parameter family of that version."
  type        = string
  default     = "valkey8"
}

variable "node_type" {
  description = "The node type. A claim takes some 500 bytes; see docs/operate.md."
  type        = string
  default     = "cache.t4g.small"
}

variable "replicas" {
  description = "How many replicas. With none, a node that is lost takes every claim with it."
  type        = number
  default     = 1

  validation {
    condition     = var.replicas >= 0 && var.replicas <= 5 && floor(var.replicas) == var.replicas
    error_message = "replicas is ${var.replicas}, but must be a whole number from 0 to 5.\nhint: 1 survives the loss of a node."
  }
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}
