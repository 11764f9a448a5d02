# Everything: an application load balancer with a rate rule, two tenants, a secret that is being rotated, alarms that
# tell somebody, longer retention, a bucket for claim checks.

module "hookgate" {
  source = "../.."

  name                     = "hookgate-complete"
  vpc_id                   = var.vpc_id
  load_balancer_subnet_ids = var.public_subnet_ids
  task_subnet_ids          = var.private_subnet_ids
  image                    = var.image
  repository_arns          = var.repository_arns
  architecture             = "ARM64"

  load_balancer          = "application"
  certificate_arn        = var.certificate_arn
  access_log_bucket      = var.access_log_bucket
  requests_per_5_minutes = 200000

  cpu       = 2048
  memory    = 4096
  min_tasks = 3
  max_tasks = 30

  retention_seconds             = 7 * 86400
  dead_letter_retention_seconds = 14 * 86400
  pressure                      = { high_water = 500000 }
  sqs                           = { linger = "5ms" }
  server                        = { memory_budget = "512MiB" }

  drain_delay_seconds  = 20
  stop_timeout_seconds = 120

  alarm_actions      = [var.alarm_topic_arn]
  thresholds         = { oldest_message_seconds = 300 }
  claim_check_bucket = { name = var.claim_check_bucket }

  secrets = {
    GITHUB_WEBHOOK_SECRET     = "As in the webhook's settings at GitHub"
    GITHUB_WEBHOOK_SECRET_OLD = "The one before, until all hooks have the new one"
    STRIPE_WEBHOOK_SECRET     = "The whole whsec_… of the endpoint at Stripe"
    GITEA_SECRET              = "The secret of Gitea's webhook"
  }

  tenants = {
    acme = {
      github = {
        plugin     = "github"
        secrets    = { secret = ["GITHUB_WEBHOOK_SECRET", "GITHUB_WEBHOOK_SECRET_OLD"] }
        redelivery = "forward"
      }
      stripe = {
        plugin       = "stripe"
        secrets      = { secret = ["STRIPE_WEBHOOK_SECRET"] }
        claim_outage = "forward"
      }
    }
    umbrella = {
      gitea = { plugin = "gitea", secrets = { secret = ["GITEA_SECRET"] }, ordering = "source" }
    }
  }

  tags = { service = "hookgate" }
}
