# Hookgate on AWS: claim store, queue, secrets, gateways, alarms. Each part is a module that can be used by itself.

data "aws_region" "this" {}

locals {
  uses_redis = var.store == "redis"

  log_group_names = {
    gateway = "/hookgate/${var.name}/gateway"
    metrics = "/hookgate/${var.name}/metrics"
  }

  kms_key_arn = var.kms_key_arn == null ? module.key[0].arn : var.kms_key_arn

  # A password for Redis has its place beside the providers' secrets.
  redis_password = "HOOKGATE_REDIS_PASSWORD"
  secret_names   = merge(var.secrets, local.uses_redis ? { (local.redis_password) = "The password of the claim store (ElastiCache's auth token)" } : {})
  secret_arns    = merge(var.secret_arns, module.secrets.arns)

  # Only those that the configuration names: the gateway gets no secret that it does not use.
  needed  = module.configuration.needed_variables
  missing = [for name in local.needed : name if !contains(concat(keys(local.secret_names), keys(var.secret_arns)), name)]
}

module "key" {
  source = "./modules/key"
  count  = var.kms_key_arn == null ? 1 : 0

  name            = var.name
  log_group_names = values(local.log_group_names)
  tags            = var.tags
}

module "claims" {
  source = "./modules/claims"
  count  = local.uses_redis ? 0 : 1

  name                = coalesce(var.claims_table_name, "${var.name}-claims")
  kms_key_arn         = local.kms_key_arn
  deletion_protection = var.deletion_protection
  tags                = var.tags
}

module "cache" {
  source = "./modules/cache"
  count  = local.uses_redis ? 1 : 0

  name                      = "${var.name}-claims"
  vpc_id                    = var.vpc_id
  subnet_ids                = var.task_subnet_ids
  gateway_security_group_id = module.service.security_group_id
  kms_key_arn               = local.kms_key_arn
  node_type                 = var.redis.node_type
  replicas                  = var.redis.replicas
  tags                      = var.tags
}

resource "aws_vpc_security_group_egress_rule" "to_cache" {
  count = local.uses_redis ? 1 : 0

  security_group_id            = module.service.security_group_id
  description                  = "The claim store"
  referenced_security_group_id = module.cache[0].security_group_id
  ip_protocol                  = "tcp"
  from_port                    = module.cache[0].port
  to_port                      = module.cache[0].port
}

module "queue" {
  source = "./modules/queue"

  name                          = "${var.name}-events"
  retention_seconds             = var.retention_seconds
  dead_letter_retention_seconds = var.dead_letter_retention_seconds
  max_receive_count             = var.max_receive_count
  visibility_timeout_seconds    = var.visibility_timeout_seconds
  kms_key_arn                   = local.kms_key_arn
  tags                          = var.tags
}

module "secrets" {
  source = "./modules/secrets"

  prefix      = var.name
  names       = local.secret_names
  kms_key_arn = local.kms_key_arn
  tags        = var.tags
}

module "configuration" {
  source = "./modules/configuration"

  tenants                       = var.tenants
  table                         = local.uses_redis ? null : module.claims[0].table
  queue_url                     = module.queue.url
  max_message_bytes             = module.queue.max_message_bytes
  retention_seconds             = module.queue.retention_seconds
  dead_letter_retention_seconds = module.queue.dead_letter_retention_seconds
  claim_ttl_seconds             = var.claim_ttl_seconds
  retry_window_seconds          = var.retry_window_seconds
  region                        = data.aws_region.this.name
  tls                           = var.tls
  drain_delay_seconds           = var.drain_delay_seconds
  server                        = var.server
  plugins                       = var.plugins
  sqs                           = var.sqs
  pressure                      = var.pressure

  redis = local.uses_redis ? {
    nodes         = [module.cache[0].node]
    password      = local.redis_password
    wait_replicas = var.redis.wait_replicas
  } : null
}

module "service" {
  source = "./modules/service"

  name                       = var.name
  vpc_id                     = var.vpc_id
  load_balancer_subnet_ids   = var.load_balancer_subnet_ids
  task_subnet_ids            = var.task_subnet_ids
  load_balancer              = var.load_balancer
  internal                   = var.internal
  provider_cidrs             = var.provider_cidrs
  egress_cidrs               = var.egress_cidrs
  certificate_arn            = var.certificate_arn
  gateway_tls                = var.tls != null
  access_log_bucket          = var.access_log_bucket
  deletion_protection        = var.deletion_protection
  image                      = var.image
  collector_image            = var.collector_image
  repository_arns            = var.repository_arns
  architecture               = var.architecture
  cpu                        = var.cpu
  memory                     = var.memory
  min_tasks                  = var.min_tasks
  max_tasks                  = var.max_tasks
  cpu_target_percent         = var.cpu_target_percent
  requests_target_per_minute = var.requests_target_per_minute
  configuration              = module.configuration.toml
  secret_arns                = { for name in local.needed : name => local.secret_arns[name] if contains(keys(local.secret_arns), name) }
  secret_key_arns            = var.secret_key_arns
  task_statements            = concat(flatten(module.claims[*].gateway_statements), module.queue.gateway_statements)
  drain_delay_seconds        = var.drain_delay_seconds
  stop_timeout_seconds       = var.stop_timeout_seconds
  log_group_names            = local.log_group_names
  log_retention_days         = var.log_retention_days
  kms_key_arn                = local.kms_key_arn
  tags                       = var.tags
}

module "observability" {
  source = "./modules/observability"

  name                 = var.name
  queue_name           = module.queue.name
  dead_letter_name     = module.queue.dead_letter_name
  high_water           = var.pressure.high_water
  table                = local.uses_redis ? null : module.claims[0].table
  cache_member_ids     = local.uses_redis ? module.cache[0].member_ids : []
  load_balancer        = var.load_balancer
  load_balancer_suffix = module.service.load_balancer_suffix
  target_group_suffix  = module.service.target_group_suffix
  cluster_name         = module.service.cluster_name
  service_name         = module.service.service_name
  alarm_actions        = var.alarm_actions
  thresholds           = var.thresholds
  tags                 = var.tags
}

module "bucket" {
  source = "./modules/bucket"
  count  = var.claim_check_bucket == null ? 0 : 1

  name              = var.claim_check_bucket.name
  expire_days       = coalesce(var.claim_check_bucket.expire_days, ceil(module.configuration.claim_ttl_seconds / 86400))
  claim_ttl_seconds = module.configuration.claim_ttl_seconds
  kms_key_arn       = local.kms_key_arn
  tags              = var.tags
}

module "firewall" {
  source = "./modules/firewall"
  count  = var.requests_per_5_minutes == null ? 0 : 1

  name                   = var.name
  load_balancer_arn      = module.service.load_balancer_arn
  requests_per_5_minutes = var.requests_per_5_minutes
  tags                   = var.tags
}

# What no part can see by itself.
resource "terraform_data" "rules" {
  input = { sources = length(var.tenants) }

  lifecycle {
    precondition {
      condition     = length(local.missing) == 0
      error_message = "The configuration names secrets that nobody makes: ${join(", ", local.missing)}.\nhint: add each to `secrets`, which makes a place for its value, or to `secret_arns`, where it exists already."
    }

    precondition {
      condition     = var.requests_per_5_minutes == null || var.load_balancer == "application"
      error_message = "requests_per_5_minutes is given, but a web ACL stands before an application load balancer alone, and this one is `${var.load_balancer}`.\nhint: leave it out, or use load_balancer = \"application\"."
    }
  }
}
