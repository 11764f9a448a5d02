# One page: what comes in, what becomes of it, and what waits.

locals {
  outcomes = ["accepted", "duplicate", "in-flight", "handshake", "rejected", "too-large", "too-slow", "unavailable", "plugin-fault", "overloaded"]
  steps    = ["read", "authenticate", "claim", "enqueue", "settle"]

  of_service = ["service", var.service_name]

  widgets = [
    {
      title = "Deliveries a minute, by outcome"
      stat  = "Sum"
      lines = [for outcome in local.outcomes : concat([var.metrics_namespace, "hookgate_deliveries_total"], local.of_service, ["outcome", outcome])]
    },
    {
      title = "Mean time of each step, in s"
      stat  = "Average"
      lines = [for step in local.steps : concat([var.metrics_namespace, "hookgate_step_seconds"], local.of_service, ["step", step])]
    },
    {
      title = "Messages that wait"
      stat  = "Maximum"
      lines = [
        ["AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", var.queue_name],
        ["AWS/SQS", "ApproximateNumberOfMessagesNotVisible", "QueueName", var.queue_name],
        ["AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", var.dead_letter_name],
      ]
    },
    {
      title = "Age of the oldest message, in s"
      stat  = "Maximum"
      lines = [["AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", var.queue_name]]
    },
    {
      title = "Ready gateways, and their CPU and memory in percent"
      stat  = "Average"
      lines = [
        [local.elb, "HealthyHostCount", "LoadBalancer", var.load_balancer_suffix, "TargetGroup", var.target_group_suffix],
        ["AWS/ECS", "CPUUtilization", "ClusterName", var.cluster_name, "ServiceName", var.service_name],
        ["AWS/ECS", "MemoryUtilization", "ClusterName", var.cluster_name, "ServiceName", var.service_name],
      ]
    },
    {
      title = "In the gateways: connections, running deliveries, memory of bodies, pressure"
      stat  = "Maximum"
      lines = [
        for metric in ["hookgate_connections", "hookgate_running_deliveries", "hookgate_in_flight_bytes", "hookgate_pressure"] :
        concat([var.metrics_namespace, metric], local.of_service)
      ]
    },
    {
      title = "Troubles: unknown sources, unsettled, without a claim, plugin faults, sources without plugin or secret"
      stat  = "Sum"
      lines = [
        for metric in ["hookgate_unroutable_total", "hookgate_unsettled_total", "hookgate_unclaimed_total", "hookgate_plugin_faults_total", "hookgate_sources_unavailable"] :
        concat([var.metrics_namespace, metric], local.of_service)
      ]
    },
    {
      title = "Claims: writes and throttles"
      stat  = "Sum"
      lines = [
        for line in concat(
          [["AWS/DynamoDB", "ConsumedWriteCapacityUnits", "TableName", coalesce(var.table, "none")]],
          [for call in local.write_calls : ["AWS/DynamoDB", "ThrottledRequests", "TableName", coalesce(var.table, "none"), "Operation", call]],
          [for id in var.cache_member_ids : ["AWS/ElastiCache", "DatabaseMemoryUsagePercentage", "CacheClusterId", id]],
        ) : line if !contains(line, "none")
      ]
    },
  ]
}

data "aws_region" "this" {}

resource "aws_cloudwatch_dashboard" "this" {
  dashboard_name = var.name

  dashboard_body = jsonencode({
    widgets = [
      for place, widget in local.widgets : {
        type   = "metric"
        x      = 12 * (place % 2)
        y      = 6 * floor(place / 2)
        width  = 12
        height = 6
        properties = {
          title   = widget.title
          stat    = widget.stat
          period  = 60
          region  = data.aws_region.this.name
          view    = "timeSeries"
          metrics = widget.lines
        }
      }
    ]
  })
}
