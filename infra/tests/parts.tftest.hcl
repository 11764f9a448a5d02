# The smaller modules: table, secrets, cache, bucket, firewall, alarms.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/1"
}

run "the_table_is_on_demand_encrypted_restorable_and_protected" {
  command = apply

  module {
    source = "./modules/claims"
  }

  variables {
    name = "hookgate-claims"
  }

  assert {
    condition = (
      aws_dynamodb_table.this.billing_mode == "PAY_PER_REQUEST" && aws_dynamodb_table.this.hash_key == "pk" &&
      aws_dynamodb_table.this.ttl[0].attribute_name == "expires_at" && aws_dynamodb_table.this.ttl[0].enabled &&
      aws_dynamodb_table.this.point_in_time_recovery[0].enabled && aws_dynamodb_table.this.deletion_protection_enabled &&
      one(aws_dynamodb_table.this.server_side_encryption).kms_key_arn == var.kms_key_arn
    )
    error_message = "The table is not as it must be."
  }

  assert {
    condition     = !strcontains(jsonencode(output.gateway_statements), "*")
    error_message = jsonencode(output.gateway_statements)
  }
}

run "secrets_are_places_without_values" {
  command = apply

  module {
    source = "./modules/secrets"
  }

  variables {
    prefix = "hookgate"
    names  = { GITHUB_WEBHOOK_SECRET = "At GitHub" }
  }

  assert {
    condition     = aws_secretsmanager_secret.this["GITHUB_WEBHOOK_SECRET"].name == "hookgate/GITHUB_WEBHOOK_SECRET"
    error_message = "It has another name."
  }
}

run "a_secret_that_cannot_be_an_environment_variable_is_refused" {
  command = plan

  module {
    source = "./modules/secrets"
  }

  variables {
    prefix = "hookgate"
    names  = { "github-secret" = "At GitHub" }
  }

  expect_failures = [var.names]
}

run "the_cache_evicts_nothing_and_speaks_tls" {
  command = apply

  module {
    source = "./modules/cache"
  }

  variables {
    name                      = "hookgate-claims"
    vpc_id                    = "vpc-1"
    subnet_ids                = ["subnet-1", "subnet-2"]
    gateway_security_group_id = "sg-1"
  }

  assert {
    condition     = one([for parameter in aws_elasticache_parameter_group.this.parameter : parameter.value if parameter.name == "maxmemory-policy"]) == "noeviction"
    error_message = "The cache may evict claims."
  }

  assert {
    condition     = aws_elasticache_replication_group.this.transit_encryption_enabled && aws_elasticache_replication_group.this.multi_az_enabled && startswith(output.node, "rediss://")
    error_message = output.node
  }
}

run "a_cache_of_another_engine_is_refused" {
  command = plan

  module {
    source = "./modules/cache"
  }

  variables {
    name                      = "hookgate-claims"
    vpc_id                    = "vpc-1"
    subnet_ids                = ["subnet-1", "subnet-2"]
    gateway_security_group_id = "sg-1"
    engine                    = "memcached"
    replicas                  = 6
  }

  expect_failures = [var.engine, var.replicas]
}

run "a_bucket_whose_objects_end_before_claims_is_refused" {
  command = plan

  module {
    source = "./modules/bucket"
  }

  variables {
    name              = "hookgate-bodies"
    expire_days       = 19
    claim_ttl_seconds = 1728000
  }

  expect_failures = [aws_s3_bucket_lifecycle_configuration.this]
}

run "a_bucket_whose_objects_end_with_claims_is_taken" {
  command = plan

  module {
    source = "./modules/bucket"
  }

  variables {
    name              = "hookgate-bodies"
    expire_days       = 20
    claim_ttl_seconds = 1728000
  }

  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.this.rule[0].expiration[0].days == 20
    error_message = "The days are others."
  }
}

run "a_rate_that_waf_does_not_take_is_refused" {
  command = plan

  module {
    source = "./modules/firewall"
  }

  variables {
    name                   = "hookgate"
    load_balancer_arn      = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:loadbalancer/app/hookgate/1"
    requests_per_5_minutes = 1
  }

  expect_failures = [var.requests_per_5_minutes]
}

run "a_depth_alarm_that_rings_too_late_is_refused" {
  command = plan

  module {
    source = "./modules/observability"
  }

  variables {
    name                 = "hookgate"
    queue_name           = "events.fifo"
    dead_letter_name     = "events-dead.fifo"
    high_water           = 100000
    load_balancer        = "network"
    load_balancer_suffix = "net/hookgate/1"
    target_group_suffix  = "targetgroup/hookgate/1"
    cluster_name         = "hookgate"
    service_name         = "hookgate"
    alarm_actions        = []
    thresholds           = { depth_percent = 90 }
  }

  expect_failures = [var.thresholds]
}
