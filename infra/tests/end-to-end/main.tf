# Key, claims, queue, secrets and configuration, applied to a stand-in for AWS.

terraform {
  required_version = ">= 1.11"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "= 5.100.0"
    }
  }
}

provider "aws" {
  region                      = "eu-central-1"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  s3_use_path_style           = true

  endpoints {
    dynamodb       = var.endpoint
    kms            = var.endpoint
    secretsmanager = var.endpoint
    sqs            = var.endpoint
    sts            = var.endpoint
  }
}

variable "endpoint" {
  description = "The stand-in."
  type        = string
}

variable "port" {
  description = "The port of deliveries."
  type        = number
}

variable "admin_port" {
  description = "The port of health checks."
  type        = number
}

variable "plugin_directory" {
  description = "Where the plugins are."
  type        = string
}

variable "redis" {
  description = "A Redis server."
  type        = string
}

variable "claim_ttl_seconds" {
  description = "A claim TTL of one's own."
  type        = number
  default     = null
}

module "key" {
  source = "../../modules/key"

  name            = "hookgate"
  log_group_names = ["/hookgate/hookgate/gateway"]
}

module "claims" {
  source = "../../modules/claims"

  name        = "hookgate-claims"
  kms_key_arn = module.key.arn
  # Or nothing could be destroyed at the end.
  deletion_protection = false
}

module "queue" {
  source = "../../modules/queue"

  name        = "hookgate-events"
  kms_key_arn = module.key.arn
}

module "secrets" {
  source = "../../modules/secrets"

  prefix               = "hookgate"
  kms_key_arn          = module.key.arn
  recovery_window_days = 0
  names                = { GITHUB_WEBHOOK_SECRET = "As at GitHub", STRIPE_WEBHOOK_SECRET = "As at Stripe" }
}

module "configuration" {
  source = "../../modules/configuration"

  table                         = module.claims.table
  queue_url                     = module.queue.url
  max_message_bytes             = module.queue.max_message_bytes
  retention_seconds             = module.queue.retention_seconds
  dead_letter_retention_seconds = module.queue.dead_letter_retention_seconds
  claim_ttl_seconds             = var.claim_ttl_seconds
  region                        = "eu-central-1"
  endpoint                      = var.endpoint
  port                          = var.port
  admin_port                    = var.admin_port
  plugin_directory              = var.plugin_directory

  tenants = {
    acme = {
      github = { plugin = "github", secrets = { secret = ["GITHUB_WEBHOOK_SECRET"] } }
      stripe = { plugin = "stripe", secrets = { secret = ["STRIPE_WEBHOOK_SECRET"] }, ordering = "source" }
    }
    # Every key that a source can have, and what must stay inside its quotes.
    umbrella = {
      everything = {
        plugin             = "hmac"
        secrets            = { secret = ["GITHUB_WEBHOOK_SECRET", "STRIPE_WEBHOOK_SECRET"] }
        key_forms          = { secret = "raw" }
        public_url         = "https://hooks.example.com/in/umbrella/everything?a=1&b=<2>"
        options            = { header = "X-Signature", prefix = "\"h1\"=\\", id = "json:/id", ordering_key = "json:/customer/ä" }
        sign_challenges    = true
        ordering           = "key"
        max_age            = "10m"
        max_future         = "1m"
        no_event_id        = "reject"
        same_id_other_body = "duplicate"
        in_flight          = "wait"
        claim_outage       = "forward"
        redelivery         = "suppress"
        redelivery_after   = "20m"
        claim_ttl          = "auto"
        content_ttl        = "3days"
        allow_weak_key     = true
      }
    }
  }
}

# The same with claims in Redis, for which there is a real server.
module "configuration_redis" {
  source = "../../modules/configuration"

  redis                         = { nodes = [var.redis], password = "REDIS_PASSWORD", key_prefix = "hookgate:{a}:" }
  queue_url                     = module.queue.url
  max_message_bytes             = module.queue.max_message_bytes
  retention_seconds             = module.queue.retention_seconds
  dead_letter_retention_seconds = module.queue.dead_letter_retention_seconds
  region                        = "eu-central-1"
  endpoint                      = var.endpoint
  port                          = var.port
  admin_port                    = var.admin_port
  plugin_directory              = var.plugin_directory
  server                        = { max_body = "256KiB", max_header_bytes = "16KiB", max_headers = 50, header_timeout = "5s", body_timeout = "5s", max_connections = 500, memory_budget = "64MiB" }
  plugins                       = { fuel = 10000000, memory = "8MiB", wall_clock = "2s", concurrent_calls = 16, output = "512KiB" }
  sqs                           = { linger = "5ms", batches = 16 }
  pressure                      = { high_water = 1000, low_water = 500 }

  tenants = {
    acme = { github = { plugin = "github", secrets = { secret = ["GITHUB_WEBHOOK_SECRET"] } } }
  }
}

output "toml_redis" {
  value = module.configuration_redis.toml
}

output "toml" {
  value = module.configuration.toml
}

output "queue_url" {
  value = module.queue.url
}

output "secret_arns" {
  value = module.secrets.arns
}
