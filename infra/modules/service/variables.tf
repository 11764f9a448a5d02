variable "name" {
  description = "What everything is called."
  type        = string
}

variable "vpc_id" {
  description = "The VPC."
  type        = string
}

variable "load_balancer_subnet_ids" {
  description = "Public subnets for the load balancer, or private ones where it is internal."
  type        = list(string)
}

variable "task_subnet_ids" {
  description = "Private subnets for the gateways, with a way to AWS: VPC endpoints or NAT."
  type        = list(string)
}

variable "load_balancer" {
  description = "`network`: TLS is passed through to the gateways; `application`: the load balancer ends TLS."
  type        = string
  default     = "network"

  validation {
    condition     = contains(["network", "application"], var.load_balancer)
    error_message = "There is no load balancer of the kind `${var.load_balancer}`.\nhint: use \"network\" or \"application\"."
  }
}

variable "internal" {
  description = "Whether the load balancer has private addresses alone."
  type        = bool
  default     = false
}

variable "provider_cidrs" {
  description = "Who may call. Providers' addresses change: a list is worth it only where all providers publish theirs."
  type        = list(string)
  default     = ["0.0.0.0/0"]
}

variable "egress_cidrs" {
  description = "Where the gateways may connect to on port 443. With VPC endpoints for everything, the VPC's own; sources with `key_hosts` fetch keys from their providers."
  type        = list(string)
  default     = ["0.0.0.0/0"]
}

variable "certificate_arn" {
  description = "The certificate of an application load balancer."
  type        = string
  default     = null
}

variable "gateway_tls" {
  description = "Whether the gateways serve TLS."
  type        = bool
}

variable "access_log_bucket" {
  description = "A bucket for the load balancer's access logs. Default: none are kept. A network load balancer logs TLS listeners alone."
  type        = string
  default     = null
}

variable "deletion_protection" {
  description = "Whether the load balancer refuses to be deleted."
  type        = bool
  default     = true
}

variable "image" {
  description = "The gateway's image, with a tag that never moves, or a digest."
  type        = string

  validation {
    condition     = can(regex("(@sha256:[0-9a-f]{64}|:[A-Za-z0-9_][A-Za-z0-9_.-]*)$", var.image)) && !endswith(var.image, ":latest")
    error_message = "The image `${var.image}` is not pinned: a task that is replaced could run another version.\nhint: name a version's tag, or better a digest: IMAGE@sha256:…"
  }
}

variable "collector_image" {
  description = "The image of the metrics' collector: AWS's distribution of OpenTelemetry, or another with the same receiver, processors and exporter."
  type        = string

  validation {
    condition     = can(regex("(@sha256:[0-9a-f]{64}|:[A-Za-z0-9_][A-Za-z0-9_.-]*)$", var.collector_image)) && !endswith(var.collector_image, ":latest")
    error_message = "The collector's image `${var.collector_image}` is not pinned.\nhint: name a version's tag, or better a digest: IMAGE@sha256:…"
  }
}

variable "repository_arns" {
  description = "The ECR repositories that the images are pulled from, if private."
  type        = list(string)
  default     = []
}

variable "architecture" {
  description = "The image's architecture: `X86_64` or `ARM64`."
  type        = string
  default     = "X86_64"

  validation {
    condition     = contains(["X86_64", "ARM64"], var.architecture)
    error_message = "Fargate has no architecture `${var.architecture}`.\nhint: use \"X86_64\" or \"ARM64\"."
  }
}

variable "cpu" {
  description = "CPU units of a task; 1024 are one processor."
  type        = number
  default     = 1024
}

variable "memory" {
  description = "Memory of a task in MiB."
  type        = number
  default     = 2048
}

variable "min_tasks" {
  description = "The fewest gateways. Two survive the loss of a zone."
  type        = number
  default     = 2

  validation {
    condition     = var.min_tasks >= 1
    error_message = "min_tasks is ${var.min_tasks}, and nothing would answer.\nhint: use at least 1; 2 survive the loss of a zone."
  }
}

variable "max_tasks" {
  description = "The most gateways."
  type        = number
  default     = 10
}

variable "cpu_target_percent" {
  description = "The CPU use that autoscaling aims at. Room above it takes a herd of retries until new tasks run."
  type        = number
  default     = 50
}

variable "requests_target_per_minute" {
  description = "The deliveries a minute of each task that autoscaling aims at. See docs/operate.md for what a task carries."
  type        = number
  default     = 30000
}

variable "port" {
  description = "The port that gateways take deliveries at."
  type        = number
  default     = 8080
}

variable "admin_port" {
  description = "The port of their health checks and metrics."
  type        = number
  default     = 8081
}

variable "configuration" {
  description = "The configuration's text."
  type        = string
}

variable "secret_arns" {
  description = "The secrets' ARNs by the environment variable that the gateway finds each in."
  type        = map(string)
}

variable "secret_key_arns" {
  description = "The keys of secrets that are not encrypted with `kms_key_arn`."
  type        = list(string)
  default     = []
}

variable "task_statements" {
  description = "What the gateway's role is allowed: the `gateway_statements` of its store and queue."
  type        = any
}

variable "drain_delay_seconds" {
  description = "How long a gateway that was told to stop serves on. Also the load balancer's deregistration delay."
  type        = number
  default     = 10
}

variable "stop_timeout_seconds" {
  description = "When Fargate kills a task that was told to stop. Longer than drain_delay, a lease (30 s) and 30 s for settles together."
  type        = number
  default     = 90

  validation {
    condition     = var.stop_timeout_seconds >= 2 && var.stop_timeout_seconds <= 120
    error_message = "A stop timeout of ${var.stop_timeout_seconds} s is not one of Fargate's: at most 120 s.\nhint: lower drain_delay_seconds to fit; it needs drain_delay_seconds + 60 s, and a bit."
  }
}

variable "log_group_names" {
  description = "The log groups."
  type        = object({ gateway = string, metrics = string })
}

variable "log_retention_days" {
  description = "How long logs are kept."
  type        = number
  default     = 365
}

variable "log_filter" {
  description = "What is logged, as RUST_LOG."
  type        = string
  default     = "info"
}

variable "kms_key_arn" {
  description = "The customer managed key of logs and secrets."
  type        = string
}

variable "metrics_namespace" {
  description = "The namespace of the gateways' metrics in CloudWatch."
  type        = string
  default     = "Hookgate"
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}
