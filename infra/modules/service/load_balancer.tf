# In front: a network load balancer that passes TLS through to the gateways, or an application load balancer that
# ends it.

locals {
  is_application = var.load_balancer == "application"
}

resource "aws_lb" "this" {
  name                             = var.name
  load_balancer_type               = var.load_balancer
  internal                         = var.internal
  subnets                          = var.load_balancer_subnet_ids
  security_groups                  = [aws_security_group.load_balancer.id]
  enable_deletion_protection       = var.deletion_protection
  enable_cross_zone_load_balancing = true
  drop_invalid_header_fields       = local.is_application ? true : null
  tags                             = var.tags

  dynamic "access_logs" {
    for_each = var.access_log_bucket == null ? [] : [var.access_log_bucket]

    content {
      bucket  = access_logs.value
      prefix  = var.name
      enabled = true
    }
  }
}

resource "aws_lb_target_group" "this" {
  name                 = var.name
  vpc_id               = var.vpc_id
  target_type          = "ip"
  port                 = var.port
  protocol             = local.is_application ? (var.gateway_tls ? "HTTPS" : "HTTP") : "TCP"
  deregistration_delay = var.drain_delay_seconds
  tags                 = var.tags

  health_check {
    protocol            = "HTTP"
    port                = tostring(var.admin_port)
    path                = "/readyz"
    matcher             = "200"
    interval            = local.check_seconds
    timeout             = local.check_seconds - 1
    healthy_threshold   = 2
    unhealthy_threshold = local.checks
  }

  lifecycle {
    precondition {
      condition     = local.is_application || var.gateway_tls
      error_message = "A network load balancer passes TLS through, and the gateways have no certificate.\nhint: give `tls`, the environment variables with certificate and key, or use load_balancer = \"application\"."
    }
  }
}

resource "aws_lb_listener" "this" {
  load_balancer_arn = aws_lb.this.arn
  port              = 443
  protocol          = local.is_application ? "HTTPS" : "TCP"
  certificate_arn   = local.is_application ? var.certificate_arn : null
  ssl_policy        = local.is_application ? "ELBSecurityPolicy-TLS13-1-2-2021-06" : null
  tags              = var.tags

  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.this.arn
  }

  lifecycle {
    precondition {
      condition     = !local.is_application || var.certificate_arn != null
      error_message = "An application load balancer ends TLS, and has no certificate.\nhint: give certificate_arn, of AWS Certificate Manager, or use load_balancer = \"network\"."
    }
  }
}

resource "aws_security_group" "load_balancer" {
  name        = "${var.name}-load-balancer"
  description = "Hookgate ${var.name}: where providers call"
  vpc_id      = var.vpc_id
  tags        = var.tags
}

resource "aws_vpc_security_group_ingress_rule" "providers" {
  for_each = toset(var.provider_cidrs)

  security_group_id = aws_security_group.load_balancer.id
  description       = "Providers"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_vpc_security_group_egress_rule" "to_gateways" {
  for_each = { deliveries = var.port, health = var.admin_port }

  security_group_id            = aws_security_group.load_balancer.id
  description                  = "To the gateways: ${each.key}"
  referenced_security_group_id = aws_security_group.gateway.id
  ip_protocol                  = "tcp"
  from_port                    = each.value
  to_port                      = each.value
}

resource "aws_security_group" "gateway" {
  name        = "${var.name}-gateway"
  description = "Hookgate ${var.name}: the gateways"
  vpc_id      = var.vpc_id
  tags        = var.tags
}

# The admin listener authenticates nobody: the load balancer's health checks alone reach it, and its listener
# forwards nothing there.
resource "aws_vpc_security_group_ingress_rule" "from_load_balancer" {
  for_each = { deliveries = var.port, health = var.admin_port }

  security_group_id            = aws_security_group.gateway.id
  description                  = "From the load balancer: ${each.key}"
  referenced_security_group_id = aws_security_group.load_balancer.id
  ip_protocol                  = "tcp"
  from_port                    = each.value
  to_port                      = each.value
}

resource "aws_vpc_security_group_egress_rule" "aws" {
  for_each = toset(var.egress_cidrs)

  security_group_id = aws_security_group.gateway.id
  description       = "AWS, and providers' keys, over TLS"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}
