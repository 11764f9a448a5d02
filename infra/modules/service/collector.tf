# The gateway tells its metrics to Prometheus; a collector beside it reads them every minute and writes those below
# to a log group, from which CloudWatch takes them (embedded metric format).
#
# Each series costs, and there may be thousands of sources: only what alarms and the dashboard show is kept, added
# up over tenants and sources. Counters have `_total` here, as in the listener's text. A histogram arrives as count
# and sum, so CloudWatch has its mean and no percentiles.

locals {
  # Metrics by the labels that they keep beside `service`.
  metrics = {
    "outcome" = ["hookgate_deliveries_total"]
    "reason"  = ["hookgate_rejected_total"]
    "step"    = ["hookgate_step_seconds"]
    "backend" = ["hookgate_clock_skew_seconds"]
    "" = [
      "hookgate_deliveries_total",
      "hookgate_unroutable_total",
      "hookgate_unsettled_total",
      "hookgate_unclaimed_total",
      "hookgate_slow_answers_total",
      "hookgate_plugin_faults_total",
      "hookgate_sources_unavailable",
      "hookgate_claim_ttl_missing_seconds",
      "hookgate_queue_depth_stale",
      "hookgate_pressure",
      "hookgate_connections",
      "hookgate_running_deliveries",
      "hookgate_in_flight_bytes",
    ]
  }

  metrics_stream = "metrics"

  kept = distinct(flatten(values(local.metrics)))

  collector_config = yamlencode({
    receivers = {
      prometheus = {
        config = {
          scrape_configs = [{
            job_name        = "hookgate"
            scrape_interval = "60s"
            static_configs  = [{ targets = ["127.0.0.1:${var.admin_port}"], labels = { service = var.name } }]
            metric_relabel_configs = [{
              source_labels = ["__name__"]
              regex         = "(${join("|", local.kept)})(_bucket|_sum|_count)?"
              action        = "keep"
            }]
          }]
        }
      }
    }
    processors = {
      # Counters are made into differences by the exporter, histograms are not.
      cumulativetodelta = { include = { match_type = "strict", metrics = ["hookgate_step_seconds"] } }
      batch             = { timeout = "10s" }
    }
    exporters = {
      awsemf = {
        region                  = local.region
        namespace               = var.metrics_namespace
        log_group_name          = aws_cloudwatch_log_group.metrics.name
        log_stream_name         = local.metrics_stream
        dimension_rollup_option = "NoDimensionRollup"
        # A series that begins begins at 0: its first value counts, or the first fault would be lost.
        retain_initial_value_of_delta_metric = true
        metric_declarations = [
          for label, names in local.metrics : {
            dimensions            = [compact(["service", label])]
            metric_name_selectors = [for name in names : "^${name}$"]
          }
        ]
      }
    }
    service = {
      telemetry = { logs = { level = "warn" }, metrics = { level = "none" } }
      pipelines = {
        metrics = { receivers = ["prometheus"], processors = ["cumulativetodelta", "batch"], exporters = ["awsemf"] }
      }
    }
  })

  collector = {
    name  = "collector"
    image = var.collector_image
    # Deliveries go on without metrics; the alarm on missing ones tells.
    essential              = false
    command                = ["--config=env:HOOKGATE_COLLECTOR_CONFIG"]
    user                   = "65532:65532"
    readonlyRootFilesystem = true
    linuxParameters        = { capabilities = { drop = ["ALL"] } }
    # Ends after the gateway, whose last numbers it tells.
    stopTimeout = var.stop_timeout_seconds
    dependsOn   = [{ containerName = "gateway", condition = "START" }]
    environment = [{ name = "HOOKGATE_COLLECTOR_CONFIG", value = local.collector_config }]
    logConfiguration = {
      logDriver = "awslogs"
      options   = merge(local.log_options, { awslogs-stream-prefix = "collector" })
    }
  }
}

resource "aws_cloudwatch_log_group" "metrics" {
  name              = var.log_group_names.metrics
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}
