# Alarms, each of which docs/operate.md explains, and a dashboard.
#
# There is none on a spill's age: the gateway has no spill yet, and an alarm on a metric that never comes guards nothing.

locals {
  alarms = merge(
    local.queue_alarms,
    local.load_balancer_alarms,
    local.gateway_alarms,
    { for name, alarm in local.dynamodb_alarms : name => alarm if var.table != null },
    { for name, alarm in local.cache_alarms : name => alarm if length(var.cache_member_ids) > 0 },
    { for name, alarm in local.latency_alarms : name => alarm if alarm.load_balancer == null || alarm.load_balancer == var.load_balancer },
  )

  queue       = { QueueName = var.queue_name }
  dead        = { QueueName = var.dead_letter_name }
  target      = { LoadBalancer = var.load_balancer_suffix, TargetGroup = var.target_group_suffix }
  service     = { service = var.service_name }
  near_full   = floor(var.high_water * var.thresholds.depth_percent / 100)
  elb         = var.load_balancer == "application" ? "AWS/ApplicationELB" : "AWS/NetworkELB"
  write_calls = ["PutItem", "UpdateItem", "DeleteItem", "GetItem"]

  # An alarm: over how many minutes, beyond what, and what is computed from which metrics. `missing` is what counts
  # where there is no data.
  queue_alarms = {
    dead-letters = {
      what       = "A consumer gave up on messages: they wait in the dead-letter queue."
      above      = 0
      minutes    = 1
      missing    = "notBreaching"
      expression = "visible"
      metrics    = { visible = ["AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", local.dead] }
    }
    oldest-message = {
      what       = "The oldest message waits too long: consumers are stopped, too few, or one group is stuck."
      above      = var.thresholds.oldest_message_seconds
      minutes    = 5
      missing    = "notBreaching"
      expression = "age"
      metrics    = { age = ["AWS/SQS", "ApproximateAgeOfOldestMessage", "Maximum", local.queue] }
    }
    depth = {
      what       = "The queue is near ${var.high_water} messages, from where on new events are answered 429."
      above      = local.near_full
      minutes    = 3
      missing    = "notBreaching"
      expression = "visible + in_flight + delayed"
      metrics = {
        visible   = ["AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", local.queue]
        in_flight = ["AWS/SQS", "ApproximateNumberOfMessagesNotVisible", "Maximum", local.queue]
        delayed   = ["AWS/SQS", "ApproximateNumberOfMessagesDelayed", "Maximum", local.queue]
      }
    }
  }

  load_balancer_alarms = {
    no-healthy-task = {
      what       = "No gateway is ready: providers get no answer."
      above      = 0
      minutes    = 2
      missing    = "breaching"
      expression = "IF(healthy < 1, 1, 0)"
      metrics    = { healthy = [local.elb, "HealthyHostCount", "Maximum", local.target] }
    }
  }

  gateway_alarms = {
    refusals-5xx = {
      what       = "More than ${var.thresholds.percent_5xx} % of deliveries are answered 5xx: store, queue, memory or plugins fail."
      above      = var.thresholds.percent_5xx
      minutes    = 3
      missing    = "notBreaching"
      expression = "IF(all > ${var.thresholds.least_deliveries}, 100 * (FILL(unavailable, 0) + FILL(faulty, 0)) / all, 0)"
      metrics = {
        all         = [var.metrics_namespace, "hookgate_deliveries_total", "Sum", local.service]
        unavailable = [var.metrics_namespace, "hookgate_deliveries_total", "Sum", merge(local.service, { outcome = "unavailable" })]
        faulty      = [var.metrics_namespace, "hookgate_deliveries_total", "Sum", merge(local.service, { outcome = "plugin-fault" })]
      }
    }
    refusals-429 = {
      what       = "More than ${var.thresholds.percent_429} % of deliveries are refused because too much waits."
      above      = var.thresholds.percent_429
      minutes    = 3
      missing    = "notBreaching"
      expression = "IF(all > ${var.thresholds.least_deliveries}, 100 * FILL(overloaded, 0) / all, 0)"
      metrics = {
        all        = [var.metrics_namespace, "hookgate_deliveries_total", "Sum", local.service]
        overloaded = [var.metrics_namespace, "hookgate_deliveries_total", "Sum", merge(local.service, { outcome = "overloaded" })]
      }
    }
    no-metrics = {
      what       = "The gateways tell no metrics: the alarms on refusals, sources and clocks are blind."
      above      = 0
      minutes    = 5
      missing    = "breaching"
      expression = "IF(connections >= 0, 0, 1)"
      metrics    = { connections = [var.metrics_namespace, "hookgate_connections", "Maximum", local.service] }
    }
    sources-unavailable = {
      what       = "A source lacks its plugin or a secret, and answers 503."
      above      = 0
      minutes    = 5
      missing    = "notBreaching"
      expression = "sources"
      metrics    = { sources = [var.metrics_namespace, "hookgate_sources_unavailable", "Maximum", local.service] }
    }
    claim-ttl = {
      what       = "Claims end before the queue's messages do: an event could be sent twice."
      above      = 0
      minutes    = 2
      missing    = "notBreaching"
      expression = "missing"
      metrics    = { missing = [var.metrics_namespace, "hookgate_claim_ttl_missing_seconds", "Maximum", local.service] }
    }
    unsettled = {
      what       = "Accepted events whose claims could not be settled: a delivery of them after the queue's window is sent again."
      above      = 0
      minutes    = 1
      missing    = "notBreaching"
      expression = "unsettled"
      metrics    = { unsettled = [var.metrics_namespace, "hookgate_unsettled_total", "Sum", local.service] }
    }
    plugin-faults = {
      what       = "A plugin trapped, or spent its fuel or memory."
      above      = var.thresholds.plugin_faults
      minutes    = 5
      missing    = "notBreaching"
      expression = "faults"
      metrics    = { faults = [var.metrics_namespace, "hookgate_plugin_faults_total", "Sum", local.service] }
    }
    clock-skew = {
      what       = "A gateway's clock and a backend's are apart; at 10 s it is not ready any more."
      above      = 2
      minutes    = 3
      missing    = "notBreaching"
      expression = "MAX([${join(", ", [for series in keys(local.skews) : "ABS(FILL(${series}, 0))"])}])"
      metrics    = local.skews
    }
    stale-depth = {
      what       = "The queue's depth cannot be read, so nothing is refused however deep it is."
      above      = 0
      minutes    = 5
      missing    = "notBreaching"
      expression = "stale"
      metrics    = { stale = [var.metrics_namespace, "hookgate_queue_depth_stale", "Maximum", local.service] }
    }
  }

  # Of each backend the clock that is furthest ahead, and the one furthest behind.
  skews = merge([
    for backend in [var.table == null ? "redis" : "dynamodb", "sqs"] : {
      for stat in ["Maximum", "Minimum"] :
      "${backend}_${lower(stat)}" => [var.metrics_namespace, "hookgate_clock_skew_seconds", stat, merge(local.service, { backend = backend })]
    }
  ]...)

  dynamodb_alarms = {
    claim-store-throttles = {
      what       = "DynamoDB throttles claims: deliveries are answered 503."
      above      = 0
      minutes    = 2
      missing    = "notBreaching"
      expression = join(" + ", [for call in local.write_calls : "FILL(${lower(call)}, 0)"])
      metrics = {
        for call in local.write_calls :
        lower(call) => ["AWS/DynamoDB", "ThrottledRequests", "Sum", { TableName = coalesce(var.table, "none"), Operation = call }]
      }
    }
  }

  cache_alarms = {
    claim-store-memory = {
      what       = "The claim store's memory is nearly full. It evicts nothing: once full, new events are answered 503."
      above      = var.thresholds.cache_memory_percent
      minutes    = 5
      missing    = "breaching"
      expression = "MAX([${join(", ", [for number, id in var.cache_member_ids : "used${number}"])}])"
      metrics = {
        for number, id in var.cache_member_ids :
        "used${number}" => ["AWS/ElastiCache", "DatabaseMemoryUsagePercentage", "Maximum", { CacheClusterId = id }]
      }
    }
    claim-store-cpu = {
      what       = "The claim store is nearly out of CPU: claims take longer, then time out."
      above      = 80
      minutes    = 5
      missing    = "notBreaching"
      expression = "MAX([${join(", ", [for number, id in var.cache_member_ids : "used${number}"])}])"
      metrics = {
        for number, id in var.cache_member_ids :
        "used${number}" => ["AWS/ElastiCache", "EngineCPUUtilization", "Maximum", { CacheClusterId = id }]
      }
    }
  }

  # Percentiles are to be had of the application load balancer alone: a network load balancer measures no answers,
  # and the collector hands histograms on as count and sum. So gateways count the answers that are slow.
  latency_alarms = {
    latency-p99 = {
      load_balancer = "application"
      what          = "The slowest hundredth of answers takes more than ${var.thresholds.p99_seconds} s."
      above         = var.thresholds.p99_seconds
      minutes       = 5
      missing       = "notBreaching"
      expression    = "p99"
      metrics       = { p99 = ["AWS/ApplicationELB", "TargetResponseTime", "p99", local.target] }
    }
    slow-answers = {
      load_balancer = null
      what          = "More than one answer in a hundred takes more than 1 s: the 99th percentile, as the gateways measure it."
      above         = 1
      minutes       = 5
      missing       = "notBreaching"
      expression    = "IF(all > ${var.thresholds.least_deliveries}, 100 * FILL(slow, 0) / all, 0)"
      metrics = {
        all  = [var.metrics_namespace, "hookgate_deliveries_total", "Sum", local.service]
        slow = [var.metrics_namespace, "hookgate_slow_answers_total", "Sum", local.service]
      }
    }
    latency-claim = {
      load_balancer = null
      what          = "Claims take more than ${var.thresholds.mean_step_seconds} s on average."
      above         = var.thresholds.mean_step_seconds
      minutes       = 5
      missing       = "notBreaching"
      expression    = "mean"
      metrics       = { mean = [var.metrics_namespace, "hookgate_step_seconds", "Average", merge(local.service, { step = "claim" })] }
    }
    latency-enqueue = {
      load_balancer = null
      what          = "Sends to the queue take more than ${var.thresholds.mean_step_seconds} s on average."
      above         = var.thresholds.mean_step_seconds
      minutes       = 5
      missing       = "notBreaching"
      expression    = "mean"
      metrics       = { mean = [var.metrics_namespace, "hookgate_step_seconds", "Average", merge(local.service, { step = "enqueue" })] }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = local.alarms

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = "${each.value.what} What to do: docs/operate.md, ${each.key}."
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.above
  evaluation_periods  = each.value.minutes
  datapoints_to_alarm = each.value.minutes
  treat_missing_data  = each.value.missing
  actions_enabled     = true
  alarm_actions       = var.alarm_actions
  ok_actions          = var.alarm_actions
  tags                = var.tags

  metric_query {
    id          = "result"
    label       = each.key
    expression  = each.value.expression
    return_data = true
  }

  dynamic "metric_query" {
    for_each = each.value.metrics

    content {
      id          = metric_query.key
      return_data = false

      metric {
        namespace   = metric_query.value[0]
        metric_name = metric_query.value[1]
        stat        = metric_query.value[2]
        dimensions  = metric_query.value[3]
        period      = 60
      }
    }
  }
}
