# The gateways: what they may do, how they stop, and what is refused before anything exists.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  name                     = "hookgate"
  vpc_id                   = "vpc-1"
  load_balancer_subnet_ids = ["subnet-1", "subnet-2"]
  task_subnet_ids          = ["subnet-3", "subnet-4"]
  gateway_tls              = true
  image                    = "registry.example/hookgate:1.0.0"
  collector_image          = "registry.example/collector:1.0.0"
  configuration            = "[admin]"
  secret_arns              = { GITHUB_WEBHOOK_SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:github" }
  task_statements          = [{ Sid = "Send", Effect = "Allow", Action = ["sqs:SendMessage"], Resource = ["arn:aws:sqs:eu-central-1:123456789012:events.fifo"] }]
  kms_key_arn              = "arn:aws:kms:eu-central-1:123456789012:key/1"
  log_group_names          = { gateway = "/hookgate/hookgate/gateway", metrics = "/hookgate/hookgate/metrics" }
}

run "a_task_is_unprivileged_read_only_and_checked" {
  command = apply

  module {
    source = "./modules/service"
  }

  assert {
    condition = alltrue([
      for container in jsondecode(aws_ecs_task_definition.this.container_definitions) :
      container.user == "65532:65532" && container.readonlyRootFilesystem && container.linuxParameters.capabilities.drop == ["ALL"] &&
      container.stopTimeout == 90
    ])
    error_message = aws_ecs_task_definition.this.container_definitions
  }

  assert {
    condition     = jsondecode(aws_ecs_task_definition.this.container_definitions)[0].healthCheck.command == ["CMD", "/hookgate", "health", "--config", "env:HOOKGATE_CONFIG"]
    error_message = aws_ecs_task_definition.this.container_definitions
  }

  assert {
    condition     = jsondecode(aws_ecs_task_definition.this.container_definitions)[0].secrets == [{ name = "GITHUB_WEBHOOK_SECRET", valueFrom = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:github" }]
    error_message = aws_ecs_task_definition.this.container_definitions
  }
}

run "no_statement_has_a_wildcard_but_for_the_registrys_login_and_the_streams_of_the_log" {
  command = apply

  module {
    source = "./modules/service"
  }

  variables {
    repository_arns = ["arn:aws:ecr:eu-central-1:123456789012:repository/hookgate"]
  }

  assert {
    condition = alltrue([
      for statement in concat(jsondecode(aws_iam_role_policy.task.policy).Statement, jsondecode(aws_iam_role_policy.execution.policy).Statement) :
      !strcontains(jsonencode(statement.Action), "*") && (contains(["ImageLogin", "Log"], statement.Sid) || !strcontains(jsonencode(statement.Resource), "*"))
    ])
    error_message = "${aws_iam_role_policy.task.policy}\n${aws_iam_role_policy.execution.policy}"
  }

  assert {
    condition     = one([for statement in jsondecode(aws_iam_role_policy.execution.policy).Statement : statement.Resource if statement.Sid == "Secrets"]) == [for arn in values(var.secret_arns) : arn]
    error_message = aws_iam_role_policy.execution.policy
  }
}

run "the_gateways_role_reads_no_secret_and_no_message" {
  command = apply

  module {
    source = "./modules/service"
  }

  assert {
    condition     = !anytrue([for action in ["secretsmanager", "ReceiveMessage", "DeleteMessage", "Scan", "Query", "s3:"] : strcontains(aws_iam_role_policy.task.policy, action)])
    error_message = aws_iam_role_policy.task.policy
  }
}

run "the_network_load_balancer_passes_tls_through_and_drains_as_long_as_the_gateway" {
  command = apply

  module {
    source = "./modules/service"
  }

  variables {
    drain_delay_seconds  = 25
    stop_timeout_seconds = 100
  }

  assert {
    condition     = aws_lb_listener.this.protocol == "TCP" && aws_lb_target_group.this.protocol == "TCP" && aws_lb_target_group.this.deregistration_delay == "25"
    error_message = "Listener ${aws_lb_listener.this.protocol}, target group ${aws_lb_target_group.this.protocol}, delay ${aws_lb_target_group.this.deregistration_delay}."
  }

  assert {
    condition     = aws_lb_target_group.this.health_check[0].path == "/readyz" && aws_lb_target_group.this.health_check[0].port == "8081"
    error_message = "It checks ${aws_lb_target_group.this.health_check[0].path}."
  }
}

run "the_admin_listener_is_reached_by_the_load_balancer_alone" {
  command = apply

  module {
    source = "./modules/service"
  }

  assert {
    condition = alltrue([
      for rule in values(aws_vpc_security_group_ingress_rule.from_load_balancer) :
      rule.cidr_ipv4 == null && rule.referenced_security_group_id == aws_security_group.load_balancer.id
    ])
    error_message = "A rule lets others in."
  }
}

run "the_collector_reads_the_admin_listener_and_keeps_what_alarms_are_made_of" {
  command = apply

  module {
    source = "./modules/service"
  }

  assert {
    condition = anytrue([
      for declaration in yamldecode(jsondecode(aws_ecs_task_definition.this.container_definitions)[1].environment[0].value).exporters.awsemf.metric_declarations :
      declaration.dimensions == [["service", "outcome"]] && contains(declaration.metric_name_selectors, "^hookgate_deliveries_total$")
    ])
    error_message = jsondecode(aws_ecs_task_definition.this.container_definitions)[1].environment[0].value
  }

  assert {
    condition     = yamldecode(jsondecode(aws_ecs_task_definition.this.container_definitions)[1].environment[0].value).receivers.prometheus.config.scrape_configs[0].static_configs[0] == { targets = ["127.0.0.1:8081"], labels = { service = "hookgate" } }
    error_message = jsondecode(aws_ecs_task_definition.this.container_definitions)[1].environment[0].value
  }
}

run "behind_a_network_load_balancer_the_gateways_own_count_scales" {
  command = apply

  module {
    source = "./modules/service"
  }

  assert {
    condition = contains(
      flatten([
        for metric in aws_appautoscaling_policy.requests.target_tracking_scaling_policy_configuration[0].customized_metric_specification[0].metrics :
        [for stat in metric.metric_stat : [for inner in stat.metric : inner.metric_name]]
      ]),
      "hookgate_deliveries_total",
    )
    error_message = "Autoscaling counts something else."
  }
}

run "behind_an_application_load_balancer_its_count_scales" {
  command = apply

  module {
    source = "./modules/service"
  }

  variables {
    load_balancer   = "application"
    certificate_arn = "arn:aws:acm:eu-central-1:123456789012:certificate/1"
    gateway_tls     = false
  }

  assert {
    condition     = aws_appautoscaling_policy.requests.target_tracking_scaling_policy_configuration[0].predefined_metric_specification[0].predefined_metric_type == "ALBRequestCountPerTarget"
    error_message = "Autoscaling counts something else."
  }

  assert {
    condition     = aws_lb_listener.this.protocol == "HTTPS" && aws_lb_target_group.this.protocol == "HTTP"
    error_message = "Listener ${aws_lb_listener.this.protocol}, target group ${aws_lb_target_group.this.protocol}."
  }
}

run "a_stop_timeout_of_exactly_the_drain_is_refused" {
  command = plan

  module {
    source = "./modules/service"
  }

  variables {
    drain_delay_seconds  = 30
    stop_timeout_seconds = 90
  }

  expect_failures = [aws_ecs_task_definition.this]
}

run "a_stop_timeout_beyond_fargates_is_refused" {
  command = plan

  module {
    source = "./modules/service"
  }

  variables {
    stop_timeout_seconds = 121
  }

  expect_failures = [var.stop_timeout_seconds]
}

run "a_drain_delay_shorter_than_the_load_balancer_takes_to_notice_is_refused" {
  command = plan

  module {
    source = "./modules/service"
  }

  variables {
    drain_delay_seconds = 9
  }

  expect_failures = [aws_ecs_task_definition.this]
}

run "a_size_that_fargate_has_not_is_refused" {
  command = plan

  module {
    source = "./modules/service"
  }

  variables {
    cpu    = 256
    memory = 4096
  }

  expect_failures = [aws_ecs_task_definition.this]
}

run "a_network_load_balancer_before_gateways_without_tls_is_refused" {
  command = plan

  module {
    source = "./modules/service"
  }

  variables {
    gateway_tls = false
  }

  expect_failures = [aws_lb_target_group.this]
}

run "an_application_load_balancer_without_a_certificate_is_refused" {
  command = plan

  module {
    source = "./modules/service"
  }

  variables {
    load_balancer = "application"
  }

  expect_failures = [aws_lb_listener.this]
}

run "a_load_balancer_of_another_kind_is_refused" {
  command = plan

  module {
    source = "./modules/service"
  }

  variables {
    load_balancer = "classic"
  }

  expect_failures = [var.load_balancer]
}

run "an_image_without_a_tag_is_refused" {
  command = plan

  module {
    source = "./modules/service"
  }

  variables {
    image = "registry.example:5000/hookgate"
  }

  expect_failures = [var.image]
}

run "an_image_that_moves_is_refused" {
  command = plan

  module {
    source = "./modules/service"
  }

  variables {
    image           = "registry.example/hookgate:latest"
    collector_image = "registry.example/collector:latest"
  }

  expect_failures = [var.image, var.collector_image]
}

run "an_architecture_that_fargate_has_not_is_refused" {
  command = plan

  module {
    source = "./modules/service"
  }

  variables {
    architecture = "RISCV64"
  }

  expect_failures = [var.architecture]
}

run "fewer_tasks_at_most_than_at_least_are_refused" {
  command = plan

  module {
    source = "./modules/service"
  }

  variables {
    min_tasks = 3
    max_tasks = 2
  }

  expect_failures = [aws_appautoscaling_target.this]
}

run "no_task_at_all_is_refused" {
  command = plan

  module {
    source = "./modules/service"
  }

  variables {
    min_tasks = 0
  }

  expect_failures = [var.min_tasks]
}
