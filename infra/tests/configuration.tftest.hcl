# The rule on how long claims live, and the text that comes of the variables.

variables {
  tenants                       = { acme = { github = { plugin = "github", secrets = { secret = ["GITHUB_WEBHOOK_SECRET"] } } } }
  table                         = "claims"
  queue_url                     = "https://sqs.eu-central-1.amazonaws.com/123456789012/events.fifo"
  region                        = "eu-central-1"
  retention_seconds             = 345600
  dead_letter_retention_seconds = 1209600
}

run "the_ttl_is_both_retentions_and_two_days" {
  command = apply

  module {
    source = "./modules/configuration"
  }

  assert {
    condition     = output.claim_ttl_seconds == 345600 + 1209600 + 2 * 86400
    error_message = "It is ${output.claim_ttl_seconds} s."
  }

  assert {
    condition     = strcontains(output.toml, "\nclaim_ttl = \"1728000s\"\n")
    error_message = "The text has another one:\n${output.toml}"
  }
}

run "the_ttl_outlives_a_patient_provider_where_that_is_longer" {
  command = apply

  module {
    source = "./modules/configuration"
  }

  variables {
    retry_window_seconds = 30 * 86400
  }

  assert {
    condition     = output.claim_ttl_seconds == 31 * 86400
    error_message = "It is ${output.claim_ttl_seconds} s."
  }
}

run "a_ttl_of_exactly_the_retentions_and_a_day_is_refused" {
  command = plan

  module {
    source = "./modules/configuration"
  }

  variables {
    claim_ttl_seconds = 345600 + 1209600 + 86400
  }

  expect_failures = [output.toml]
}

run "a_second_more_is_taken" {
  command = apply

  module {
    source = "./modules/configuration"
  }

  variables {
    claim_ttl_seconds = 345600 + 1209600 + 86400 + 1
  }

  assert {
    condition     = output.claim_ttl_seconds == 1641601
    error_message = "It is ${output.claim_ttl_seconds} s."
  }
}

run "a_ttl_shorter_than_providers_retry_is_refused" {
  command = plan

  module {
    source = "./modules/configuration"
  }

  variables {
    retention_seconds             = 60
    dead_letter_retention_seconds = 60
    claim_ttl_seconds             = 259200
  }

  expect_failures = [output.toml]
}

run "a_table_and_redis_together_are_refused" {
  command = plan

  module {
    source = "./modules/configuration"
  }

  variables {
    redis = { nodes = ["rediss://cache:6379"] }
  }

  expect_failures = [output.toml]
}

run "neither_table_nor_redis_is_refused" {
  command = plan

  module {
    source = "./modules/configuration"
  }

  variables {
    table = null
  }

  expect_failures = [output.toml]
}

run "a_low_water_mark_that_is_not_below_the_high_one_is_refused" {
  command = plan

  module {
    source = "./modules/configuration"
  }

  variables {
    pressure = { high_water = 1000, low_water = 1000 }
  }

  expect_failures = [output.toml]
}

run "a_text_too_long_for_a_task_is_refused" {
  command = plan

  module {
    source = "./modules/configuration"
  }

  variables {
    tenants = { acme = { for number in range(1000) : "source-${number}" => { plugin = "github", secrets = { secret = ["GITHUB_WEBHOOK_SECRET"] } } } }
  }

  expect_failures = [output.toml]
}

run "a_tenant_with_a_capital_is_refused" {
  command = plan

  module {
    source = "./modules/configuration"
  }

  variables {
    tenants = { Acme = { github = { plugin = "github" } } }
  }

  expect_failures = [var.tenants]
}

run "an_option_with_a_dot_is_refused" {
  command = plan

  module {
    source = "./modules/configuration"
  }

  variables {
    tenants = { acme = { github = { plugin = "github", options = { "a.b" = "c" } } } }
  }

  expect_failures = [var.tenants]
}

run "quotes_in_an_option_stay_inside_the_string" {
  command = apply

  module {
    source = "./modules/configuration"
  }

  variables {
    tenants = { acme = { x = { plugin = "hmac", options = { prefix = "a\"\n[store]\nkind = \"memory" } } } }
  }

  assert {
    condition     = strcontains(output.toml, "options.prefix = \"a\\\"\\n[store]\\nkind = \\\"memory\"\n")
    error_message = output.toml
  }
}

run "redis_takes_the_tables_place" {
  command = apply

  module {
    source = "./modules/configuration"
  }

  variables {
    table = null
    redis = { nodes = ["rediss://cache:6379"], password = "REDIS_PASSWORD", wait_replicas = 1 }
  }

  assert {
    condition     = strcontains(output.toml, "[store.redis]\nnodes = [\"rediss://cache:6379\"]\npassword = \"env:REDIS_PASSWORD\"\nwait_replicas = 1\n") && !strcontains(output.toml, "dynamodb")
    error_message = output.toml
  }

  assert {
    condition     = contains(output.needed_variables, "REDIS_PASSWORD")
    error_message = "The password's variable is not asked for."
  }
}
