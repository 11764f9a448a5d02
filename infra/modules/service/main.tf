# The gateways: tasks on Fargate that drain when they are told to stop.
#
# How a deployment goes: a new task becomes ready, an old one is taken from the load balancer
# (deregistration delay), gets SIGTERM, serves on for `drain_delay`, finishes what runs (a lease at most), waits for
# settles (30 s at most) and ends. The stop timeout must be longer than all of that, and Fargate allows 120 s.

data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}
data "aws_region" "this" {}

locals {
  region = data.aws_region.this.name

  # The longest lease that a source can have, and how long a drain waits for settles (gateway/src/config/policy.rs,
  # gateway/src/cli/serve.rs).
  lease_seconds  = 30
  settle_seconds = 30
  stop_seconds   = var.drain_delay_seconds + local.lease_seconds + local.settle_seconds

  # Two failed checks of 5 s: how long the load balancer takes to notice that a gateway is not ready.
  check_seconds   = 5
  checks          = 2
  notices_seconds = local.check_seconds * local.checks

  # The memory that Fargate has for each size of CPU, in MiB.
  sizes = {
    256   = [512, 2048]
    512   = [1024, 4096]
    1024  = [2048, 8192]
    2048  = [4096, 16384]
    4096  = [8192, 30720]
    8192  = [16384, 61440]
    16384 = [32768, 122880]
  }

  # Lines are dropped where CloudWatch takes none: a log that cannot be written must not hold up deliveries.
  log_options = {
    awslogs-group   = aws_cloudwatch_log_group.gateway.name
    awslogs-region  = local.region
    mode            = "non-blocking"
    max-buffer-size = "25m"
  }

  gateway = {
    name                   = "gateway"
    image                  = var.image
    essential              = true
    command                = ["--log-format", "json", "serve", "--config", "env:HOOKGATE_CONFIG"]
    user                   = "65532:65532"
    readonlyRootFilesystem = true
    stopTimeout            = var.stop_timeout_seconds
    linuxParameters        = { capabilities = { drop = ["ALL"] } }
    ulimits                = [{ name = "nofile", softLimit = 65536, hardLimit = 65536 }]
    environment = [
      { name = "HOOKGATE_CONFIG", value = var.configuration },
      { name = "RUST_LOG", value = var.log_filter },
    ]
    secrets = [for name, arn in var.secret_arns : { name = name, valueFrom = arn }]
    portMappings = [
      { containerPort = var.port, protocol = "tcp" },
      { containerPort = var.admin_port, protocol = "tcp" },
    ]
    healthCheck = {
      command     = ["CMD", "/hookgate", "health", "--config", "env:HOOKGATE_CONFIG"]
      interval    = 10
      timeout     = 5
      retries     = 3
      startPeriod = 60
    }
    logConfiguration = {
      logDriver = "awslogs"
      options   = merge(local.log_options, { awslogs-stream-prefix = "gateway" })
    }
  }
}

resource "aws_cloudwatch_log_group" "gateway" {
  name              = var.log_group_names.gateway
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

resource "aws_ecs_cluster" "this" {
  name = var.name
  tags = var.tags

  setting {
    name  = "containerInsights"
    value = "enabled"
  }
}

resource "aws_ecs_task_definition" "this" {
  family                   = var.name
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = var.cpu
  memory                   = var.memory
  execution_role_arn       = aws_iam_role.execution.arn
  task_role_arn            = aws_iam_role.task.arn
  container_definitions    = jsonencode([local.gateway, local.collector])
  tags                     = var.tags

  runtime_platform {
    operating_system_family = "LINUX"
    cpu_architecture        = var.architecture
  }

  lifecycle {
    precondition {
      condition     = var.stop_timeout_seconds > local.stop_seconds
      error_message = "A stop timeout of ${var.stop_timeout_seconds} s would kill gateways that still drain: drain_delay ${var.drain_delay_seconds} s + the longest lease ${local.lease_seconds} s + ${local.settle_seconds} s for settles = ${local.stop_seconds} s, and it must be longer.\nhint: raise stop_timeout_seconds (Fargate allows 120 s), or lower drain_delay_seconds."
    }

    precondition {
      condition     = var.drain_delay_seconds >= local.notices_seconds
      error_message = "With a drain_delay of ${var.drain_delay_seconds} s gateways would close before the load balancer has noticed: it checks every ${local.check_seconds} s and believes ${local.checks} failures, ${local.notices_seconds} s.\nhint: use at least ${local.notices_seconds} s."
    }

    precondition {
      condition     = try(var.memory >= local.sizes[var.cpu][0] && var.memory <= local.sizes[var.cpu][1], false)
      error_message = "Fargate has no tasks of ${var.cpu} CPU units and ${var.memory} MiB.\nhint: ${try("with ${var.cpu} units use ${local.sizes[var.cpu][0]} to ${local.sizes[var.cpu][1]} MiB", "use 256, 512, 1024, 2048, 4096, 8192 or 16384 CPU units")}."
    }
  }
}

resource "aws_ecs_service" "this" {
  #checkov:skip=CKV_AWS_332:1.4.0 is the latest, and a version that is named does not change under a running service

  name                               = var.name
  cluster                            = aws_ecs_cluster.this.id
  task_definition                    = aws_ecs_task_definition.this.arn
  launch_type                        = "FARGATE"
  platform_version                   = "1.4.0"
  desired_count                      = var.min_tasks
  deployment_minimum_healthy_percent = 100
  deployment_maximum_percent         = 200
  health_check_grace_period_seconds  = 60
  enable_execute_command             = false
  propagate_tags                     = "SERVICE"
  tags                               = var.tags

  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }

  network_configuration {
    subnets          = var.task_subnet_ids
    security_groups  = [aws_security_group.gateway.id]
    assign_public_ip = false
  }

  load_balancer {
    target_group_arn = aws_lb_target_group.this.arn
    container_name   = local.gateway.name
    container_port   = var.port
  }

  lifecycle {
    # Autoscaling's.
    ignore_changes = [desired_count]
  }

  depends_on = [aws_lb_listener.this, aws_iam_role_policy.execution, aws_iam_role_policy.task]
}
