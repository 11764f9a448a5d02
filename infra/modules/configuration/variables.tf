variable "tenants" {
  description = "The sources of each tenant, by tenant and source. The keys are those of `[tenants.TENANT.sources.SOURCE]` in docs/configuration.md, except that `secrets` names environment variables alone, without `env:`."
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

  validation {
    condition = alltrue(flatten([
      for tenant, sources in var.tenants : [
        for name in concat([tenant], keys(sources)) : can(regex("^[a-z0-9][a-z0-9-]{0,62}$", name))
      ]
    ]))
    error_message = "These are no names of tenants or sources: ${join(", ", distinct(flatten([for tenant, sources in var.tenants : [for name in concat([tenant], keys(sources)) : name if !can(regex("^[a-z0-9][a-z0-9-]{0,62}$", name))]])))}.\nhint: use 1 to 63 lower-case letters, digits and hyphens, no hyphen first."
  }

  validation {
    condition     = alltrue(flatten([for sources in values(var.tenants) : [for source in values(sources) : [for key in concat(keys(source.secrets), keys(source.key_forms), keys(source.options)) : can(regex("^[A-Za-z0-9_-]+$", key))]]]))
    error_message = "A key of `secrets`, `key_forms` or `options` holds more than letters, digits, `_` and `-`.\nhint: write it as the plugin's manifest does; `hookgate plugin inspect` shows it."
  }
}

variable "table" {
  description = "The claim table's name. Needed unless claims are in Redis."
  type        = string
  default     = null
}

variable "redis" {
  description = "Where claims are, if not in DynamoDB: the servers' URLs, the environment variable that holds the password, and how many replicas have to confirm."
  type = object({
    nodes         = list(string)
    password      = optional(string)
    wait_replicas = optional(number, 0)
    key_prefix    = optional(string)
  })
  default = null
}

variable "queue_url" {
  description = "The queue's URL."
  type        = string
}

variable "max_message_bytes" {
  description = "The largest message that the queue takes."
  type        = number
  default     = 262144
}

variable "retention_seconds" {
  description = "How long the queue keeps messages."
  type        = number
}

variable "dead_letter_retention_seconds" {
  description = "How long the dead-letter queue keeps messages, from the moment they come there."
  type        = number
}

variable "claim_ttl_seconds" {
  description = "How long an event is remembered. Default: both retentions and two days, or a day more than `retry_window_seconds` where that is longer."
  type        = number
  default     = null
}

variable "retry_window_seconds" {
  description = "How long the most patient provider goes on retrying. Most give up within three days; DocuSign after 15, Amazon SNS after 23: say so here for such a source, or give it `claim_ttl = \"auto\"`. `hookgate check` names a source whose provider retries longer."
  type        = number
  default     = 259200
}

variable "region" {
  description = "The region of table and queue."
  type        = string
}

variable "endpoint" {
  description = "The endpoint of a stand-in for AWS. Default: AWS's own."
  type        = string
  default     = null
}

variable "tls" {
  description = "The environment variables that hold the certificate and its key as PEM. Default: no TLS in the gateway."
  type        = object({ certificate = string, key = string })
  default     = null
}

variable "port" {
  description = "The port that deliveries come to."
  type        = number
  default     = 8080
}

variable "admin_port" {
  description = "The port of health checks and metrics."
  type        = number
  default     = 8081
}

variable "plugin_directory" {
  description = "Where the image has the plugins."
  type        = string
  default     = "/plugins"
}

variable "drain_delay_seconds" {
  description = "How long a gateway that was told to stop serves on."
  type        = number
  default     = 10
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
  description = "How messages are batched, as in `[queue.sqs]`. A longer `linger` makes fewer requests, which are what SQS charges for."
  type = object({
    linger  = optional(string)
    batches = optional(number)
  })
  default = {}
}

variable "pressure" {
  description = "From how many messages in the queue on new events are refused: those of tenants above their fair share at `low_water` (default: four fifths), all at `high_water`."
  type = object({
    high_water = optional(number, 100000)
    low_water  = optional(number)
  })
  default = {}
}
