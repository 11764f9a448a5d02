# As many gateways as CPU and requests demand, whichever asks for more. A gateway holds nothing that another lacks, so
# they may come and go; those that go drain.

resource "aws_appautoscaling_target" "this" {
  service_namespace  = "ecs"
  resource_id        = "service/${aws_ecs_cluster.this.name}/${aws_ecs_service.this.name}"
  scalable_dimension = "ecs:service:DesiredCount"
  min_capacity       = var.min_tasks
  max_capacity       = var.max_tasks
  tags               = var.tags

  lifecycle {
    precondition {
      condition     = var.max_tasks >= var.min_tasks
      error_message = "max_tasks is ${var.max_tasks}, fewer than min_tasks, which is ${var.min_tasks}.\nhint: raise max_tasks."
    }
  }
}

resource "aws_appautoscaling_policy" "cpu" {
  name               = "${var.name}-cpu"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.this.service_namespace
  resource_id        = aws_appautoscaling_target.this.resource_id
  scalable_dimension = aws_appautoscaling_target.this.scalable_dimension

  target_tracking_scaling_policy_configuration {
    target_value       = var.cpu_target_percent
    scale_in_cooldown  = 300
    scale_out_cooldown = 60

    predefined_metric_specification {
      predefined_metric_type = "ECSServiceAverageCPUUtilization"
    }
  }
}

resource "aws_appautoscaling_policy" "requests" {
  name               = "${var.name}-requests"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.this.service_namespace
  resource_id        = aws_appautoscaling_target.this.resource_id
  scalable_dimension = aws_appautoscaling_target.this.scalable_dimension

  target_tracking_scaling_policy_configuration {
    target_value       = var.requests_target_per_minute
    scale_in_cooldown  = 300
    scale_out_cooldown = 60

    dynamic "predefined_metric_specification" {
      for_each = local.is_application ? [1] : []

      content {
        predefined_metric_type = "ALBRequestCountPerTarget"
        resource_label         = "${aws_lb.this.arn_suffix}/${aws_lb_target_group.this.arn_suffix}"
      }
    }

    # A network load balancer counts no requests: the gateways do.
    dynamic "customized_metric_specification" {
      for_each = local.is_application ? [] : [1]

      content {
        metrics {
          id          = "deliveries"
          return_data = false

          metric_stat {
            stat = "Sum"

            metric {
              namespace   = var.metrics_namespace
              metric_name = "hookgate_deliveries_total"

              dimensions {
                name  = "service"
                value = var.name
              }
            }
          }
        }

        metrics {
          id          = "tasks"
          return_data = false

          metric_stat {
            stat = "Average"

            metric {
              namespace   = "ECS/ContainerInsights"
              metric_name = "RunningTaskCount"

              dimensions {
                name  = "ClusterName"
                value = aws_ecs_cluster.this.name
              }

              dimensions {
                name  = "ServiceName"
                value = aws_ecs_service.this.name
              }
            }
          }
        }

        metrics {
          id          = "each"
          label       = "Deliveries a minute of each task"
          expression  = "deliveries / tasks"
          return_data = true
        }
      }
    }
  }
}
