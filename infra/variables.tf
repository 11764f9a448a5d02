variable "name" {
  description = "What everything is called. One deployment a name and region."
  type        = string
  default     = "hookgate"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,24}[a-z0-9]$", var.name))
    error_message = "`${var.name}` cannot name a deployment.\nhint: use 2 to 26 lower-case letters, digits and hyphens, a letter first and no hyphen last: a load balancer's name has 32 characters at most."
  }
}

variable "vpc_id" {
  description = "The VPC."
  type        = string
}

variable "load_balancer_subnet_ids" {
  description = "Public subnets for the load balancer, in two zones at least."
  type        = list(string)

  validation {
    condition     = length(distinct(var.load_balancer_subnet_ids)) >= 2
    error_message = "The load balancer has ${length(distinct(var.load_balancer_subnet_ids))} subnet, and would be lost with its zone.\nhint: name subnets in two zones at least."
  }
}

variable "task_subnet_ids" {
  description = "Private subnets for gateways and cache, in two zones at least, with a way to AWS: VPC endpoints or NAT."
  type        = list(string)

  validation {
    condition     = length(distinct(var.task_subnet_ids)) >= 2
    error_message = "The gateways have ${length(distinct(var.task_subnet_ids))} subnet, and would be lost with its zone.\nhint: name subnets in two zones at least."
  }
}

variable "image" {
  description = "The gateway's image, with a tag that never moves, or a digest."
  type        = string
}

variable "collector_image" {
  description = "The image of the metrics' collector."
  type        = string
  default     = "public.ecr.aws/aws-observability/aws-otel-collector:v0.43.3"
}

variable "repository_arns" {
  description = "The ECR repositories that the images are pulled from, if private."
  type        = list(string)
  default     = []
}

variable "tenants" {
  description = "The sources of each tenant, by tenant and source, as in modules/configuration. Secrets are named by their environment variable."
  type = map(map(object({
    plugin             = string
    secrets            = optional(map(list(string)), {})
    key_forms          = optional(map(string), {})
    public_url         = optional(string)
    options            = optional(map(string), {})
    key_hosts          = optional(list(string))
    sign_challenges    = optional(bool)
    ordering           = optional(string)
    max_age            = optional(string)
    max_future         = optional(string)
    no_event_id        = optional(string)
    same_id_other_body = optional(string)
    in_flight          = optional(string)
    claim_outage       = optional(string)
    redelivery         = optional(string)
    redelivery_after   = optional(string)
    claim_ttl          = optional(string)
    content_ttl        = optional(string)
    allow_weak_key     = optional(bool)
  })))
}

variable "secrets" {
  description = "Secrets to make a place for, by environment variable, each with what it is. Values are put there outside of Terraform."
  type        = map(string)
  default     = {}
}

variable "secret_arns" {
  description = "Secrets that exist already, by environment variable."
  type        = map(string)
  default     = {}
}

variable "secret_key_arns" {
  description = "The customer managed keys of the secrets in `secret_arns`, where they have their own."
  type        = list(string)
  default     = []
}

variable "kms_key_arn" {
  description = "The customer managed key for everything at rest. Default: one is made. Your own must let CloudWatch Logs use it."
  type        = string
  default     = null
}

variable "store" {
  description = "Where claims are: `dynamodb` or `redis` (ElastiCache)."
  type        = string
  default     = "dynamodb"

  validation {
    condition     = contains(["dynamodb", "redis"], var.store)
    error_message = "There is no claim store `${var.store}`.\nhint: use \"dynamodb\" or \"redis\"."
  }
}

variable "claims_table_name" {
  description = "The claim table's name, where it is not `NAME-claims`: a table that was restored has another."
  type        = string
  default     = null
}

variable "redis" {
  description = "The cache of `store = \"redis\"`. `wait_replicas`: how many replicas have to confirm a settlement."
  type = object({
    node_type     = optional(string, "cache.t4g.small")
    replicas      = optional(number, 1)
    wait_replicas = optional(number, 1)
  })
  default = {}

  validation {
    condition     = var.redis.wait_replicas <= var.redis.replicas
    error_message = "redis.wait_replicas is ${var.redis.wait_replicas}, but there are only ${var.redis.replicas} replicas to confirm: no event would ever be settled.\nhint: raise replicas, or lower wait_replicas."
  }
}

variable "retention_seconds" {
  description = "How long the queue keeps a message that nobody takes."
  type        = number
  default     = 345600
}

variable "dead_letter_retention_seconds" {
  description = "How long the dead-letter queue keeps a message, from the moment it comes there."
  type        = number
  default     = 1209600
}

variable "max_receive_count" {
  description = "How often a message is handed out before it goes to the dead-letter queue."
  type        = number
  default     = 3
}

variable "visibility_timeout_seconds" {
  description = "How long a consumer has for a message before another gets it."
  type        = number
  default     = 60
}

variable "claim_ttl_seconds" {
  description = "How long an event is remembered. Default: both retentions and two days, or a day more than providers retry. Too short a value is refused with the numbers."
  type        = number
  default     = null
}

variable "retry_window_seconds" {
  description = "How long the most patient provider goes on retrying, as in modules/configuration."
  type        = number
  default     = 259200
}

variable "load_balancer" {
  description = "`network`: TLS is passed through to the gateways; `application`: the load balancer ends TLS."
  type        = string
  default     = "network"
}

variable "tls" {
  description = "The environment variables (of `secrets` or `secret_arns`) that hold the gateways' certificate and key as PEM. Needed behind a network load balancer."
  type        = object({ certificate = string, key = string })
  default     = null
}

variable "certificate_arn" {
  description = "The certificate of an application load balancer."
  type        = string
  default     = null
}

variable "internal" {
  description = "Whether the load balancer has private addresses alone."
  type        = bool
  default     = false
}

variable "provider_cidrs" {
  description = "Who may call."
  type        = list(string)
  default     = ["0.0.0.0/0"]
}

variable "egress_cidrs" {
  description = "Where the gateways may connect to on port 443. With VPC endpoints for everything, the VPC's own; sources with `key_hosts` fetch keys from their providers."
  type        = list(string)
  default     = ["0.0.0.0/0"]
}

variable "access_log_bucket" {
  description = "A bucket for the load balancer's access logs. Default: none are kept."
  type        = string
  default     = null
}

variable "requests_per_5_minutes" {
  description = "The most requests that one address may send in five minutes; an application load balancer's alone. Default: no such bound."
  type        = number
  default     = null
}

variable "architecture" {
  description = "The image's architecture: `X86_64` or `ARM64`."
  type        = string
  default     = "X86_64"
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
}

variable "max_tasks" {
  description = "The most gateways."
  type        = number
  default     = 10
}

variable "cpu_target_percent" {
  description = "The CPU use that autoscaling aims at."
  type        = number
  default     = 50
}

variable "requests_target_per_minute" {
  description = "The deliveries a minute of each task that autoscaling aims at."
  type        = number
  default     = 30000
}

variable "drain_delay_seconds" {
  description = "How long a gateway that was told to stop serves on; also the deregistration delay."
  type        = number
  default     = 10
}

variable "stop_timeout_seconds" {
  description = "When Fargate kills a task that was told to stop: later than drain_delay, a lease (30 s) and 30 s for settles; at most 120."
  type        = number
  default     = 90
}

variable "log_retention_days" {
  description = "How long logs are kept."
  type        = number
  default     = 365
}

variable "server" {
  description = "Limits of `[server]`, as in docs/configuration.md."
  type = object({
    max_body         = optional(string)
    max_header_bytes = optional(string)
    max_headers      = optional(number)
    header_timeout   = optional(string)
    body_timeout     = optional(string)
    max_connections  = optional(number)
    memory_budget    = optional(string)
  })
  default = {}
}

variable "plugins" {
  description = "Limits of `[plugins]`, as in docs/configuration.md."
  type = object({
    fuel             = optional(number)
    memory           = optional(string)
    wall_clock       = optional(string)
    concurrent_calls = optional(number)
    output           = optional(string)
  })
  default = {}
}

variable "sqs" {
  description = "How messages are batched, as in `[queue.sqs]`."
  type = object({
    linger  = optional(string)
    batches = optional(number)
  })
  default = {}
}

variable "pressure" {
  description = "From how many messages in the queue on new events are refused."
  type = object({
    high_water = optional(number, 100000)
    low_water  = optional(number)
  })
  default = {}
}

variable "alarm_actions" {
  description = "Whom alarms tell, as ARNs of SNS topics. With an empty list they only show."
  type        = list(string)
}

variable "thresholds" {
  description = "When alarms ring, as in modules/observability."
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
}

variable "claim_check_bucket" {
  description = "A bucket for bodies too large for a message. The gateway does not use it yet. `expire_days`: default as claims."
  type = object({
    name        = string
    expire_days = optional(number)
  })
  default = null
}

variable "deletion_protection" {
  description = "Whether table and load balancer refuse to be deleted."
  type        = bool
  default     = true
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}
