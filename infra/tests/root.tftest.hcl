# All parts together.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  vpc_id                   = "vpc-1"
  load_balancer_subnet_ids = ["subnet-1", "subnet-2"]
  task_subnet_ids          = ["subnet-3", "subnet-4"]
  image                    = "registry.example/hookgate:1.0.0"
  alarm_actions            = ["arn:aws:sns:eu-central-1:123456789012:alarms"]
  tls                      = { certificate = "TLS_CERTIFICATE", key = "TLS_KEY" }
  secrets                  = { TLS_CERTIFICATE = "", TLS_KEY = "", GITHUB_WEBHOOK_SECRET = "" }
  tenants                  = { acme = { github = { plugin = "github", secrets = { secret = ["GITHUB_WEBHOOK_SECRET"] } } } }
}

run "what_is_deployed_is_what_is_put_out" {
  command = apply

  assert {
    condition     = strcontains(output.configuration, "[store.dynamodb]\ntable = \"hookgate-claims\"\n") && strcontains(output.configuration, "tls_key = \"env:TLS_KEY\"\n")
    error_message = output.configuration
  }

  assert {
    condition     = output.claim_ttl_seconds == 1728000
    error_message = "The claims live ${output.claim_ttl_seconds} s."
  }
}

run "the_gateways_role_has_exactly_the_actions_that_the_gateway_uses" {
  command = apply

  assert {
    condition = sort(distinct(flatten([for statement in jsondecode(output.task_policy).Statement : statement.Action]))) == sort([
      "dynamodb:DeleteItem",
      "dynamodb:DescribeTable",
      "dynamodb:DescribeTimeToLive",
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:UpdateItem",
      "kms:Decrypt",
      "kms:GenerateDataKey",
      "logs:CreateLogStream",
      "logs:PutLogEvents",
      "sqs:GetQueueAttributes",
      "sqs:GetQueueUrl",
      "sqs:SendMessage",
    ])
    error_message = output.task_policy
  }

  assert {
    condition     = !strcontains(output.task_policy, "*")
    error_message = output.task_policy
  }
}

run "every_alarm_of_the_issue_is_there" {
  command = apply

  assert {
    condition = length(setsubtract([
      "dead-letters", "oldest-message", "depth", "refusals-5xx", "refusals-429", "claim-store-throttles", "slow-answers", "latency-claim",
      "latency-enqueue", "no-healthy-task", "no-metrics", "claim-ttl", "sources-unavailable",
    ], keys(output.alarm_names))) == 0
    error_message = jsonencode(output.alarm_names)
  }
}

run "behind_an_application_load_balancer_there_is_a_p99" {
  command = apply

  variables {
    load_balancer          = "application"
    certificate_arn        = "arn:aws:acm:eu-central-1:123456789012:certificate/1"
    tls                    = null
    requests_per_5_minutes = 200000
    claim_check_bucket     = { name = "hookgate-bodies" }
  }

  assert {
    condition     = contains(keys(output.alarm_names), "latency-p99")
    error_message = jsonencode(output.alarm_names)
  }

  assert {
    condition     = !strcontains(output.configuration, "tls_key")
    error_message = output.configuration
  }
}

run "redis_takes_the_tables_place" {
  command = apply

  variables {
    store = "redis"
  }

  assert {
    condition     = strcontains(output.configuration, "nodes = [\"rediss://master.hookgate-claims.abcdef.euc1.cache.amazonaws.com:6379\"]") && !strcontains(output.task_policy, "dynamodb")
    error_message = output.configuration
  }

  assert {
    condition     = contains(keys(output.alarm_names), "claim-store-memory") && !contains(keys(output.alarm_names), "claim-store-throttles")
    error_message = jsonencode(output.alarm_names)
  }
}

run "a_restored_table_is_known_by_its_name" {
  command = apply

  variables {
    claims_table_name = "hookgate-claims-2"
  }

  assert {
    condition     = strcontains(output.configuration, "[store.dynamodb]\ntable = \"hookgate-claims-2\"\n")
    error_message = output.configuration
  }
}

run "a_secret_that_nobody_makes_is_refused" {
  command = plan

  variables {
    secrets = { TLS_CERTIFICATE = "", TLS_KEY = "" }
  }

  expect_failures = [terraform_data.rules]
}

run "a_secret_that_exists_already_is_taken" {
  command = apply

  variables {
    secrets     = { TLS_CERTIFICATE = "", TLS_KEY = "" }
    secret_arns = { GITHUB_WEBHOOK_SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:mine" }
  }

  assert {
    condition     = strcontains(output.execution_policy, "secret:mine")
    error_message = output.execution_policy
  }
}

run "a_rate_rule_before_a_network_load_balancer_is_refused" {
  command = plan

  variables {
    requests_per_5_minutes = 200000
  }

  expect_failures = [terraform_data.rules]
}

run "one_zone_is_refused" {
  command = plan

  variables {
    load_balancer_subnet_ids = ["subnet-1"]
    task_subnet_ids          = ["subnet-3", "subnet-3"]
  }

  expect_failures = [var.load_balancer_subnet_ids, var.task_subnet_ids]
}

run "a_name_too_long_for_a_load_balancer_is_refused" {
  command = plan

  variables {
    name = "a-name-of-more-than-26-letters"
  }

  expect_failures = [var.name]
}

run "a_store_of_another_kind_is_refused" {
  command = plan

  variables {
    store = "memcached"
  }

  expect_failures = [var.store]
}

run "more_confirmations_than_replicas_are_refused" {
  command = plan

  variables {
    store = "redis"
    redis = { replicas = 1, wait_replicas = 2 }
  }

  expect_failures = [var.redis]
}
