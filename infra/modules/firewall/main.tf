# A bound on requests from one address, in front of an application load balancer. The gateway has its own bounds on
# connections, memory and each tenant's share; this one keeps a flood from the load balancer's bill.

resource "aws_wafv2_web_acl" "this" {
  #checkov:skip=CKV_AWS_192:Nothing behind it is Java, and a rule that reads bodies could refuse an event that only mentions such text
  #checkov:skip=CKV2_AWS_31:Requests hold signatures; the load balancer logs what is needed, and blocked requests are counted

  name        = var.name
  description = "Hookgate ${var.name}: at most so many requests from one address"
  scope       = "REGIONAL"
  tags        = var.tags

  default_action {
    allow {}
  }

  rule {
    name     = "rate"
    priority = 1

    action {
      block {
        custom_response {
          # What providers come again on; 403, which is the default, many take as final.
          response_code = 429
        }
      }
    }

    statement {
      rate_based_statement {
        limit                 = var.requests_per_5_minutes
        evaluation_window_sec = 300
        aggregate_key_type    = "IP"
      }
    }

    visibility_config {
      cloudwatch_metrics_enabled = true
      metric_name                = "${var.name}-rate"
      sampled_requests_enabled   = false
    }
  }

  visibility_config {
    cloudwatch_metrics_enabled = true
    metric_name                = var.name
    sampled_requests_enabled   = false
  }
}

resource "aws_wafv2_web_acl_association" "this" {
  resource_arn = var.load_balancer_arn
  web_acl_arn  = aws_wafv2_web_acl.this.arn
}
