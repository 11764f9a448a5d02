# The gateway's configuration, as the TOML that `hookgate check` accepts, and the rule on how long claims live.
#
# Makes nothing and asks nobody: what it says is known before anything exists.

locals {
  day = 86400

  # A claim must outlive every message that it stands for: the queue's retention, then the dead-letter queue's,
  # which starts anew in FIFO queues, then a day. Else a delivery that comes again is a new event beside a message
  # that still waits. The gateway itself refuses less.
  retained  = var.retention_seconds + var.dead_letter_retention_seconds
  least_ttl = local.retained + local.day

  # One more day as margin, as the gateway's own "auto" has it.
  claim_ttl = coalesce(var.claim_ttl_seconds, max(local.least_ttl + local.day, var.retry_window_seconds + local.day))

  low_water = coalesce(var.pressure.low_water, floor(var.pressure.high_water * 4 / 5))

  # A JSON string, number, boolean or list of strings is TOML as well.
  lines = { for section, values in local.sections : section => [for key, value in values : "${key} = ${jsonencode(value)}" if value != null] }

  sections = {
    server = merge(
      {
        listen          = "0.0.0.0:${var.port}"
        drain_delay     = "${var.drain_delay_seconds}s"
        tls_certificate = try("env:${var.tls.certificate}", null)
        tls_key         = try("env:${var.tls.key}", null)
      },
      var.server,
    )
    # Health checks come from the load balancer; security groups let nobody else in.
    admin   = { listen = "0.0.0.0:${var.admin_port}" }
    plugins = merge({ directory = var.plugin_directory }, var.plugins)
    store   = { kind = var.redis == null ? "dynamodb" : "redis", claim_ttl = "${local.claim_ttl}s" }
    "store.dynamodb" = {
      table = var.redis == null ? var.table : null
    }
    "store.redis" = {
      nodes         = try(var.redis.nodes, null)
      password      = try("env:${var.redis.password}", null)
      wait_replicas = try(var.redis.wait_replicas, null)
      key_prefix    = try(var.redis.key_prefix, null)
    }
    queue = {
      kind        = "sqs"
      max_message = "${floor(var.max_message_bytes / 1024)}KiB"
    }
    "queue.sqs" = merge({ url = var.queue_url }, var.sqs)
    "queue.pressure" = {
      high_water = var.pressure.high_water
      low_water  = local.low_water
    }
    aws = {
      region   = var.region
      endpoint = var.endpoint
    }
  }

  sources = merge([
    for tenant, sources in var.tenants : {
      for name, source in sources : "tenants.${tenant}.sources.${name}" => concat(
        [for key, value in source : "${key} = ${jsonencode(value)}" if value != null && !contains(["secrets", "key_forms", "options"], key)],
        [for key, names in source.secrets : "secrets.${key} = ${jsonencode([for name in names : "env:${name}"])}"],
        [for key, form in source.key_forms : "key_forms.${key} = ${jsonencode(form)}"],
        [for key, value in source.options : "options.${key} = ${jsonencode(value)}"],
      )
    }
  ]...)

  order = ["server", "admin", "plugins", "store", "store.dynamodb", "store.redis", "queue", "queue.sqs", "queue.pressure", "aws"]

  toml = join("\n", concat(
    [for section in local.order : "[${section}]\n${join("\n", local.lines[section])}\n" if length(local.lines[section]) > 0],
    [for path in sort(keys(local.sources)) : "[${path}]\n${join("\n", local.sources[path])}\n"],
  ))

  # What the sources and the servers need in their environment.
  needed = distinct(concat(
    flatten([for sources in values(var.tenants) : [for source in values(sources) : values(source.secrets)]]),
    var.tls == null ? [] : [var.tls.certificate, var.tls.key],
    try(var.redis.password, null) == null ? [] : [var.redis.password],
  ))
}
